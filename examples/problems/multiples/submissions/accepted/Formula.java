import java.util.Scanner;

public class Formula {
    static long total(long k, long n) {
        long m = n / k;
        return k * m * (m + 1) / 2;
    }

    static long gcd(long a, long b) {
        return b == 0 ? a : gcd(b, a % b);
    }

    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        StringBuilder out = new StringBuilder();
        for (int t = in.nextInt(); t > 0; t--) {
            long a = in.nextLong();
            long b = in.nextLong();
            long n = in.nextLong();
            out.append(total(a, n) + total(b, n) - total(a / gcd(a, b) * b, n)).append('\n');
        }
        System.out.print(out);
    }
}

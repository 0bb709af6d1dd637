import java.util.Scanner;

public class Halving {
    public static void main(String[] args) {
        Scanner in = new Scanner(System.in);
        int low = 1;
        int high = 1_000_000;
        while (true) {
            int guess = (low + high) / 2;
            System.out.println(guess);
            System.out.flush();
            String answer = in.next();
            if (answer.equals("correct")) {
                return;
            }
            if (answer.equals("higher")) {
                low = guess + 1;
            } else {
                high = guess - 1;
            }
        }
    }
}

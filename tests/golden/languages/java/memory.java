import java.util.ArrayList;

class Main {
    public static void main(String[] args) {
        var blocks = new ArrayList<byte[]>();
        while (true) blocks.add(new byte[1 << 20]);
    }
}

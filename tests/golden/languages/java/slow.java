class Main {
    static volatile int turns;

    public static void main(String[] args) {
        while (true) turns++;
    }
}

class Main {
    public static void main(String[] args) {
        System.out.println(new int[0][1]);
        throw new IllegalStateException();
    }
}

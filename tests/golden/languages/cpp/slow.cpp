int main() {
    for (volatile int turns = 0;; turns = turns + 1) {
    }
}

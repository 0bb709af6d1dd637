int main(void) {
    for (volatile int turns = 0;; turns = turns + 1) {
    }
}

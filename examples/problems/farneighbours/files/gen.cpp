// Prints an input: `gen N`. Nothing is random here.
#include <cstdio>

int main(int argc, char** argv) {
    if (argc != 2) return 1;
    puts(argv[1]);
}

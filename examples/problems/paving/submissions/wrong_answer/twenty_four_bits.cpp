// Reads only the lowest 24 bits of n.
#include <cstdint>
#include <cstdio>

static const uint64_t modulus = 1'000'000'007;

int main() {
    uint64_t n;
    if (scanf("%lu", &n) != 1) return 1;
    uint64_t before = 0, now = 1;
    for (int bit = 23; bit >= 0; bit--) {
        const uint64_t after = (before + now) % modulus;
        const uint64_t even = (now * now + before * before) % modulus;
        const uint64_t odd = now * ((after + before) % modulus) % modulus;
        const uint64_t below = before * ((now + modulus - before + now) % modulus) % modulus;
        before = n >> bit & 1 ? even : below;
        now = n >> bit & 1 ? odd : even;
    }
    printf("%lu\n", now);
}

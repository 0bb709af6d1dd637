// One step for every slab: good for groups 1 and 2 and half of group 3.
#include <cstdint>
#include <cstdio>

int main() {
    uint64_t n;
    if (scanf("%lu", &n) != 1) return 1;
    uint32_t before = 0, now = 1;
    for (uint64_t slab = 0; slab < n; slab++) {
        uint32_t after = before + now;
        if (after >= 1'000'000'007) after -= 1'000'000'007;
        before = now;
        now = after;
    }
    printf("%u\n", now);
}

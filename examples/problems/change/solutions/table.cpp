#include <cstdio>
#include <vector>

int main() {
    size_t amount, kinds;
    if (scanf("%zu %zu", &amount, &kinds) != 2) return 1;
    std::vector<size_t> coins(kinds), best(amount + 1, 0), last(amount + 1, 0);
    for (size_t& coin : coins) {
        if (scanf("%zu", &coin) != 1) return 1;
    }
    for (size_t sum = 1; sum <= amount; sum++) {
        best[sum] = amount + 1;
        for (size_t coin : coins) {
            if (coin <= sum && best[sum - coin] + 1 < best[sum]) {
                best[sum] = best[sum - coin] + 1;
                last[sum] = coin;
            }
        }
    }
    printf("%zu\n", best[amount]);
    for (size_t sum = amount; sum > 0; sum -= last[sum]) printf("%zu ", last[sum]);
    puts("");
}

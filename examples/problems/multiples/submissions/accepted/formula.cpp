#include <cstdint>
#include <cstdio>
#include <numeric>

static int64_t sum_of_multiples(int64_t k, int64_t n) {
    const int64_t m = n / k;
    return k * m * (m + 1) / 2;
}

int main() {
    int t;
    if (scanf("%d", &t) != 1) return 1;
    while (t-- > 0) {
        long long a, b, n;
        if (scanf("%lld %lld %lld", &a, &b, &n) != 3) return 1;
        const int64_t both = std::lcm(static_cast<int64_t>(a), static_cast<int64_t>(b));
        printf("%lld\n", static_cast<long long>(sum_of_multiples(a, n) + sum_of_multiples(b, n) - sum_of_multiples(both, n)));
    }
}

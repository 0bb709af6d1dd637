// Has room for 100 meadows.
#include <array>
#include <cmath>
#include <cstdio>

int main() {
    std::array<double, 100> sides{};
    size_t t;
    if (scanf("%zu", &t) != 1) return 1;
    for (size_t i = 0; i < t; i++) {
        long long p, q;
        if (scanf("%lld %lld", &p, &q) != 2) return 1;
        const double root = std::sqrt(static_cast<double>(p * p - 4 * q));
        sides.at(i) = 2.0 * static_cast<double>(q) / (static_cast<double>(p) + root);
    }
    for (size_t i = 0; i < t; i++) printf("%.15g\n", sides[i]);
}

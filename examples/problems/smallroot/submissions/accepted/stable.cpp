#include <cmath>
#include <cstdio>

int main() {
    int t;
    if (scanf("%d", &t) != 1) return 1;
    while (t-- > 0) {
        long long p, q;
        if (scanf("%lld %lld", &p, &q) != 2) return 1;
        const double root = std::sqrt(static_cast<double>(p * p - 4 * q));
        printf("%.15g\n", 2.0 * static_cast<double>(q) / (static_cast<double>(p) + root));
    }
}

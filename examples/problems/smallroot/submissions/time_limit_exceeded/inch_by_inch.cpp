// Walks to the whole part of the root one step at a time before it computes anything.
#include <algorithm>
#include <cmath>
#include <cstdio>

int main() {
    int t;
    if (scanf("%d", &t) != 1) return 1;
    while (t-- > 0) {
        long long p, q, whole = 0;
        if (scanf("%lld %lld", &p, &q) != 2) return 1;
        while ((p - whole - 1) * (whole + 1) < q && 2 * (whole + 1) < p) whole++;
        const double root = std::sqrt(static_cast<double>(p * p - 4 * q));
        const double side = 2.0 * static_cast<double>(q) / (static_cast<double>(p) + root);
        printf("%.15g\n", std::max(side, static_cast<double>(whole)));
    }
}

// Divides by the large root, but subtracts in doubles: wrong where the meadow is nearly a square.
#include <cmath>
#include <cstdio>

int main() {
    int t;
    double p, q;
    if (scanf("%d", &t) != 1) return 1;
    while (t-- > 0) {
        if (scanf("%lf %lf", &p, &q) != 2) return 1;
        printf("%.15g\n", 2 * q / (p + std::sqrt(std::fmax(0.0, p * p - 4 * q))));
    }
}

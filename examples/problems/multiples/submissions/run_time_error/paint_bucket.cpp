// Keeps a flag for every post in an array that was made for shorter roads.
#include <array>
#include <cstdio>

int main() {
    static std::array<bool, 200'000> painted;
    int t;
    if (scanf("%d", &t) != 1) return 1;
    while (t-- > 0) {
        int a, b, n;
        if (scanf("%d %d %d", &a, &b, &n) != 3) return 1;
        painted.fill(false);
        long long sum = 0;
        for (int step : {a, b}) {
            for (long long post = step; post <= n; post += step) {
                if (!painted.at(static_cast<size_t>(post))) sum += post;
                painted[static_cast<size_t>(post)] = true;
            }
        }
        printf("%lld\n", sum);
    }
}

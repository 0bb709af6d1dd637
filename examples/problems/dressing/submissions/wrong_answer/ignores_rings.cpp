// Never says impossible: what is in a ring is left out.
#include <cstdio>
#include <vector>

int main() {
    size_t n, m;
    if (scanf("%zu %zu", &n, &m) != 2) return 1;
    std::vector<std::vector<size_t>> after(n + 1);
    std::vector<int> waits(n + 1, 0);
    while (m-- > 0) {
        size_t a, b;
        if (scanf("%zu %zu", &a, &b) != 2) return 1;
        after[a].push_back(b);
        waits[b]++;
    }
    std::vector<size_t> order;
    for (size_t garment = 1; garment <= n; garment++) {
        if (!waits[garment]) order.push_back(garment);
    }
    for (size_t i = 0; i < order.size(); i++) {
        for (size_t next : after[order[i]]) {
            if (!--waits[next]) order.push_back(next);
        }
    }
    for (size_t garment : order) printf("%zu ", garment);
    puts("");
}

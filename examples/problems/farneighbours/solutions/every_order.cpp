// Tries the orders one after another.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

int main() {
    int n;
    if (scanf("%d", &n) != 1) return 1;
    std::vector<int> row(static_cast<size_t>(n));
    std::iota(row.begin(), row.end(), 1);
    do {
        const auto rivals = [](int left, int right) { return std::abs(left - right) == 1; };
        if (std::adjacent_find(row.begin(), row.end(), rivals) == row.end()) {
            for (int guest : row) printf("%d ", guest);
            puts("");
            return 0;
        }
    } while (std::next_permutation(row.begin(), row.end()));
    puts("NO");
}

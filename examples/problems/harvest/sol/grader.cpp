// The jury's main program: reads the fields, asks the contestant's function, prints its answer.
#include <cstdio>
#include <vector>

#include "harvest.h"

int main() {
    int n;
    if (scanf("%d", &n) != 1) return 1;
    std::vector<int> yields(static_cast<size_t>(n));
    for (int& yield : yields) {
        if (scanf("%d", &yield) != 1) return 1;
    }
    printf("%lld\n", best_harvest(n, yields.data()));
}

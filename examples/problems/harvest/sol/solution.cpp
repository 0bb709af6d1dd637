#include <algorithm>

#include "harvest.h"

long long best_harvest(int n, const int* yields) {
    long long best = yields[0], here = yields[0];
    for (int i = 1; i < n; i++) {
        here = std::max(here, 0LL) + yields[i];
        best = std::max(best, here);
    }
    return best;
}

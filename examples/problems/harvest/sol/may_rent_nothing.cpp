// Rents no field at all where every yield is negative: no subtask is without such a test.
#include <algorithm>

#include "harvest.h"

long long best_harvest(int n, const int* yields) {
    long long best = 0, here = 0;
    for (int i = 0; i < n; i++) {
        here = std::max(here + yields[i], 0LL);
        best = std::max(best, here);
    }
    return best;
}

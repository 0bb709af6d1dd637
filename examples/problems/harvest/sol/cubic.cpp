// Adds up every stretch anew: 40 points.
#include <algorithm>

#include "harvest.h"

long long best_harvest(int n, const int* yields) {
    long long best = yields[0];
    for (int from = 0; from < n; from++) {
        for (int to = from; to < n; to++) {
            long long sum = 0;
            for (int i = to; i >= from; i--) {
                sum += yields[i];
                asm volatile("" : "+r"(sum));  // or the compiler would add several fields at once
            }
            best = std::max(best, sum);
        }
    }
    return best;
}

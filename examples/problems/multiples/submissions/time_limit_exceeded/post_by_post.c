/* Looks at every post of the road. */
#include <stdio.h>

int main(void) {
    int t;
    unsigned a, b, n;
    if (scanf("%d", &t) != 1) return 1;
    while (t-- > 0) {
        if (scanf("%u %u %u", &a, &b, &n) != 3) return 1;
        unsigned long long sum = 0;
        for (unsigned post = 1; post <= n; post++) {
            if (post % a == 0 || post % b == 0) sum += post;
        }
        printf("%llu\n", sum);
    }
    return 0;
}

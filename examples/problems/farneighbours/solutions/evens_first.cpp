#include <cstdio>

int main() {
    int n;
    if (scanf("%d", &n) != 1) return 1;
    if (n == 2 || n == 3) {
        puts("NO");
        return 0;
    }
    for (int guest = 2; guest <= n; guest += 2) printf("%d ", guest);
    for (int guest = 1; guest <= n; guest += 2) printf("%d ", guest);
    puts("");
}

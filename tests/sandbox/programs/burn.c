/* Uses argv[1] ms of CPU time (0: endless) and ignores all signals that can be ignored. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    long limit_ms = argc > 1 ? atol(argv[1]) : 0;
    struct timespec used;
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (limit_ms == 0 || used.tv_sec * 1000 + used.tv_nsec / 1000000 < limit_ms);
    puts("burnt");
    return 0;
}

/* Sleeps endlessly without using CPU time. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    puts("asleep");
    fflush(stdout);
    for (;;)
        sleep(1000);
}

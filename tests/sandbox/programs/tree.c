/* Creates a tree of argv[1] orphaned processes in their own sessions, then exits with success. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each process creates two smaller trees, writes a byte to the pipe and sleeps endlessly. */
static int grow(int size, int report_fd)
{
    for (size--; size > 0;) {
        int part = (size + 1) / 2;
        pid_t child = fork();
        if (child < 0)
            return -1;
        if (child == 0) {
            setsid();
            if (grow(part, report_fd) < 0 || write(report_fd, "x", 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
        size -= part;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 1000, ends[2], stand = 0;
    char one;
    for (int number = 1; number < 32; number++)
        if (number != SIGCHLD)
            signal(number, SIG_IGN);
    if (pipe(ends) || grow(size, ends[1]) < 0)
        return 1;
    while (stand < size - 1 && read(ends[0], &one, 1) == 1)
        stand++;
    printf("%d\n", stand + 1);
    return 0;
}

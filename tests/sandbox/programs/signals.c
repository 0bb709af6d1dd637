/* Tries to kill, stop or disturb its launcher, pid 1 and all other processes. */
#include "attempt.h"

static int everybody(void)
{
    setsid();
    kill(-1, SIGSTOP);
    kill(-1, SIGKILL);
    errno = ESRCH;
    return -1;
}

int main(void)
{
    pid_t parent = getppid();
    printf("parent %d\n", (int)parent);
    fflush(stdout);
    signal(SIGCHLD, SIG_DFL);
    for (int number = 1; number <= 64; number++) {
        if (parent > 0)
            kill(parent, number);
        for (pid_t pid = 1; pid < 64; pid++)
            if (pid != getpid()) {
                kill(pid, number);
                syscall(SYS_tgkill, 1, pid, number);
            }
    }
    if (fork() == 0)
        _exit(everybody());
    for (;;)
        pause();
}

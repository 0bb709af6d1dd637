/* Tries: to kill, stop or confuse its launcher, its init and everybody else it can name. */
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
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD, SIGPIPE, SIGSTOP, SIGKILL};
    printf("parent %d\n", (int)parent);
    fflush(stdout);
    signal(SIGCHLD, SIG_DFL);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        kill(1, numbers[i]);
        if (parent > 0)
            kill(parent, numbers[i]);
        for (pid_t pid = 1; pid < 64; pid++)
            if (pid != getpid())
                kill(pid, numbers[i]);
    }
    if (fork() == 0)
        _exit(everybody());
    for (;;)
        pause();
}

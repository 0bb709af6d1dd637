/* Runs one attempt in a child process; if the child is killed, the attempt counts as blocked.
 *
 * An attempt returns what a system call returns: -1 with errno if it was refused, anything else if it succeeded. main()
 * ends with `return verdict();`: 0 if all attempts were blocked, 99 if one succeeded. */
#ifndef ATTEMPT_H
#define ATTEMPT_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THROUGH = 201 };
static int breaches __attribute__((unused));

static inline void attempt(const char *name, int (*try)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child < 0) {
        printf("breach %s: cannot fork, so nothing was tried (%s)\n", name, strerror(errno));
        breaches++;
        return;
    }
    if (child == 0) {
        errno = 0;
        int got = try();
        _exit(got == -1 ? (errno > 0 && errno < 200 ? errno : 199) : THROUGH);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        printf("blocked %s: killed by %d\n", name, WTERMSIG(status));
    else if (WEXITSTATUS(status) == THROUGH)
        breaches++, printf("breach %s\n", name);
    else
        printf("blocked %s: %s\n", name, strerror(WEXITSTATUS(status)));
}

static inline int verdict(void)
{
    fflush(stdout);
    return breaches ? 99 : 0;
}
#endif

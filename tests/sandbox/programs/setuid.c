/* Tries to gain privileges: argv[1] = a set-uid program that prints its effective uid; also tries su. */
#include "attempt.h"
#include <sys/prctl.h>
#include <sys/statvfs.h>

static const char *program;

static int gain(void)
{
    int status, ends[2];
    unsigned before = geteuid(), after = before;
    char text[64] = "";
    if (pipe(ends))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        execl(program, program, "whoami", (char *)NULL);
        _exit(errno);
    }
    close(ends[1]);
    if (read(ends[0], text, sizeof text - 1) > 0)
        after = (unsigned)atoi(text);
    waitpid(child, &status, 0);
    errno = EPERM;
    return after != before ? 0 : -1;
}

static int substitute_user(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("/usr/bin/su", "su", "-c", "true", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    errno = EPERM;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int privileges_stay_possible(void)
{
    errno = EPERM;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? -1 : 0;
}

static int capabilities_left(void)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    errno = EPERM;
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "Cap", 3) && strtoull(line + 8, NULL, 16) != 0)
            return 0;
    return -1;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "whoami")) {
        printf("%u", geteuid());
        return 0;
    }
    if (getuid() == 0 || geteuid() == 0 || getgid() == 0)
        breaches++, puts("breach runs as root");
    program = argc > 1 ? argv[1] : "/usr/bin/su";
    attempt("gain", gain);
    attempt("substitute_user", substitute_user);
    attempt("privileges_stay_possible", privileges_stay_possible);
    attempt("capabilities_left", capabilities_left);
    return verdict();
}

/* One side of an interaction: argv[1] = ask | answer | write | silent | flood | write_forever | exit | kill, argv[2] =
 * rounds. */
#include "attempt.h"

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "silent";
    long rounds = argc > 2 ? atol(argv[2]) : 10, got;
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(role, "ask"))
        for (long i = 1; i <= rounds; i++) {
            printf("%ld\n", i);
            if (!fgets(line, sizeof line, stdin) || (got = atol(line)) != 2 * i)
                return 4;
        }
    else if (!strcmp(role, "answer"))
        while (fgets(line, sizeof line, stdin))
            printf("%ld\n", 2 * atol(line));
    else if (!strcmp(role, "write"))
        for (long i = 1; i <= rounds; i++, usleep(1000))
            printf("%ld\n", i);
    else if (!strcmp(role, "write_forever"))
        for (;;)
            puts("and so on");
    else if (!strcmp(role, "exit"))
        return 7;
    else if (!strcmp(role, "kill"))
        raise(SIGKILL);
    else if (!strcmp(role, "silent"))
        return fgets(line, sizeof line, stdin) ? 5 : 6;
    else if (!strcmp(role, "flood"))
        for (signal(SIGPIPE, SIG_IGN);;)
            if (write(1, line, sizeof line) < 0)
                continue;
    return 0;
}

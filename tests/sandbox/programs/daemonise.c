/* Tries to survive its own exit by a double fork into a new session, with stdout open ("hold") or all closed. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int ends[2];
    char one;
    if (pipe(ends))
        return 1;
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (int number = 1; number < 65; number++)
                signal(number, SIG_IGN);
            if (write(ends[1], "x", 1) != 1)
                _exit(1);
            for (int fd = 0; fd < 64; fd++)
                if (fd != 1 || argc < 2 || strcmp(argv[1], "hold") != 0)
                    close(fd);
            for (;;)
                pause();
        }
        _exit(0);
    }
    close(ends[1]);
    if (read(ends[0], &one, 1) != 1)
        return 1;
    puts("left behind");
    return 0;
}

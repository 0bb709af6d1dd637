/* Writes endless output to the descriptors given as digits in argv[1], ignoring SIGPIPE and errors. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char block[1 << 16];
    memset(block, 'f', sizeof block);
    signal(SIGPIPE, SIG_IGN);
    for (;;)
        for (const char *digit = argc > 1 ? argv[1] : "1"; *digit; digit++)
            if (write(*digit - '0', block, sizeof block) < 0)
                continue;
}

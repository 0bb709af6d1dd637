/* Tries to write a file larger than allowed, ignoring SIGXFSZ; prints its size. */
#include "attempt.h"

int main(void)
{
    static char block[1 << 16];
    struct stat made;
    signal(SIGXFSZ, SIG_IGN);
    int fd = open("large", O_CREAT | O_WRONLY, 0600);
    while (fd >= 0 && write(fd, block, sizeof block) > 0)
        ;
    if (fd < 0 || fstat(fd, &made))
        return 1;
    printf("%ld\n", (long)made.st_size);
    return 0;
}

/* Tries to fill the directory argv[1] with bytes, then with names; prints how many of each. */
#include "attempt.h"

int main(int argc, char **argv)
{
    static char block[1 << 16];
    char name[256];
    long bytes = 0, names = 0;
    if (argc < 2 || chdir(argv[1]))
        return 2;
    for (int file = 0; file < 64; file++) {
        snprintf(name, sizeof name, "bytes-%d", file);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            break;
        long before = bytes;
        for (ssize_t got; bytes < 1L << 31 && (got = write(fd, block, sizeof block)) > 0;)
            bytes += got;
        close(fd);
        if (bytes == before)
            break;
    }
    for (int file = 0; file < 64; file++) {
        snprintf(name, sizeof name, "bytes-%d", file);
        unlink(name);
    }
    for (; names < 1000000; names++) {
        snprintf(name, sizeof name, "name-%ld", names);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        if (fd < 0)
            break;
        close(fd);
    }
    printf("%ld %ld\n", bytes, names);
    return 0;
}

/* Looks for inherited descriptors other than stdin, stdout and stderr. */
#include "attempt.h"

int main(void)
{
    char path[64], target[256];
    for (int fd = 3; fd < 65536; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof target - 1);
        target[size < 0 ? 0 : size] = 0;
        printf("breach descriptor %d is open: %s\n", fd, target);
        breaches++;
    }
    return verdict();
}

/* Tries to use argv[2] MiB that are attributed to no process: "dropped" pages of a mapping, or full "sockets". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* The pages stay allocated but are in no page table. */
static long by_dropped(long wanted)
{
    long held = 0;
    for (; held < wanted; held++) {
        char *piece = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED)
            break;
        memset(piece, 1, MIB);
        madvise(piece, MIB, MADV_DONTNEED);
    }
    return held;
}

static long by_sockets(long wanted)
{
    static char block[64 * 1024];
    long bytes = 0;
    int pair[2], most = 64 * MIB;
    while (bytes / MIB < wanted && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
        setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
        for (ssize_t sent; (sent = send(pair[0], block, sizeof block, MSG_DONTWAIT)) > 0;)
            bytes += sent;
    }
    return bytes / MIB;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long wanted = atol(argv[2]);
    printf("%ld\n", !strcmp(argv[1], "dropped") ? by_dropped(wanted) : by_sockets(wanted));
    return 0;
}

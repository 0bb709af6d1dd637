/* Tries to use more memory than allowed: argv[1] is the method, argv[2] the total in MiB. */
#include "attempt.h"
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

static const size_t MIB = 1 << 20;

static void touch(char *start, size_t size)
{
    for (size_t at = 0; at < size; at += 4096)
        start[at] = 1;
}

static int by_malloc(size_t mib)
{
    for (; mib; mib--) {
        char *got = malloc(MIB);
        if (!got)
            return -1;
        touch(got, MIB);
    }
    return 0;
}

static int by_mmap(size_t mib)
{
    char *got = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return -1;
    touch(got, mib * MIB);
    return 0;
}

static int fill(int fd, size_t mib)
{
    static char block[1 << 20];
    memset(block, 1, sizeof block);
    if (fd < 0)
        return -1;
    for (; mib; mib--)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            return -1;
    return 0;
}

static int by_file(const char *folder, size_t mib)
{
    char name[64];
    for (size_t i = 0; i < mib; i++) {
        snprintf(name, sizeof name, "%s/fill-%zu", folder, i);
        int fd = open(name, O_CREAT | O_WRONLY, 0600);
        if (fill(fd, 1) < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int by_memfd(size_t mib)
{
    int fd = memfd_create("fill", 0);
    char *got = fd < 0 || ftruncate(fd, (off_t)(mib * MIB)) ? MAP_FAILED
        : mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (got == MAP_FAILED)
        return -1;
    touch(got, mib * MIB);
    return 0;
}

/* Many files, written but never mapped: memory that is attributed to no process. */
static int by_memfds(size_t mib)
{
    signal(SIGXFSZ, SIG_IGN);
    for (; mib >= 8; mib -= 8)
        if (fill(memfd_create("fill", 0), 8) < 0)
            return -1;
    return 0;
}

static int by_shared(size_t mib)
{
    char *got = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED)
        return -1;
    touch(got, mib * MIB);
    return 0;
}

static int by_sysv(size_t mib)
{
    for (; mib >= 8; mib -= 8) {
        int id = shmget(IPC_PRIVATE, 8 * MIB, IPC_CREAT | 0600);
        char *got = id < 0 ? (char *)-1 : shmat(id, NULL, 0);
        if (got == (char *)-1)
            return -1;
        touch(got, 8 * MIB);
        shmdt(got);
    }
    return 0;
}

static int by_pipes(size_t mib)
{
    static char block[1 << 20];
    for (size_t got = 0; got < mib;) {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) < 0)
            return -1;
        if (fcntl(ends[1], F_SETPIPE_SZ, (int)MIB) < 0)
            return -1;
        if (write(ends[1], block, sizeof block) > 0)
            got++;
    }
    return 0;
}

static int by_children(size_t mib)
{
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            int got = by_malloc(mib / 8);
            if (got < 0)
                _exit(1);
            for (;;)
                pause();
        }
    for (;;)
        pause();
}

/* Reads libraries and programs of the system. Page cache can be reclaimed and must not count as memory. */
static int by_page_cache(void)
{
    static char block[1 << 16];
    FILE *list = fopen("/proc/self/maps", "r");
    size_t total = 0;
    if (list)
        fclose(list);
    for (int round = 0; round < 2; round++) {
        static const char *paths[] = {"/usr/bin/python3.11", "/usr/bin/gdb", "/usr/bin/perl", "/usr/bin/bash",
            "/usr/bin/git", "/usr/bin/openssl", "/usr/lib/x86_64-linux-gnu/libc.a", "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus"};
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
            int fd = open(paths[i], O_RDONLY);
            for (ssize_t got; fd >= 0 && (got = read(fd, block, sizeof block)) > 0;)
                total += (size_t)got;
            if (fd >= 0)
                close(fd);
        }
    }
    printf("read %zu\n", total);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    size_t mib = (size_t)atoi(argv[2]);
    int got = -1;
    if (!strcmp(argv[1], "malloc")) got = by_malloc(mib);
    else if (!strcmp(argv[1], "mmap")) got = by_mmap(mib);
    else if (!strcmp(argv[1], "tmpfs")) got = by_file("/tmp", mib);
    else if (!strcmp(argv[1], "work")) got = by_file(".", mib);
    else if (!strcmp(argv[1], "devshm")) got = by_file("/dev/shm", mib);
    else if (!strcmp(argv[1], "memfd")) got = by_memfd(mib);
    else if (!strcmp(argv[1], "memfds")) got = by_memfds(mib);
    else if (!strcmp(argv[1], "shared")) got = by_shared(mib);
    else if (!strcmp(argv[1], "sysv")) got = by_sysv(mib);
    else if (!strcmp(argv[1], "pipes")) got = by_pipes(mib);
    else if (!strcmp(argv[1], "children")) got = by_children(mib);
    else if (!strcmp(argv[1], "page_cache")) got = by_page_cache();
    if (got < 0)
        printf("refused: %s\n", strerror(errno));
    else
        puts("got it all");
    fflush(stdout);
    return got < 0 ? 3 : 0;
}

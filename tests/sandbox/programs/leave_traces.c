/* Leaves files, shared memory, queues, a process and timestamps for the next run in the slot. */
#include "attempt.h"
#include <mqueue.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

static void drop(const char *name)
{
    int fd = open(name, O_CREAT | O_WRONLY, 0666);
    if (fd >= 0 && write(fd, "canary-of-the-first-run", 23) == 23)
        printf("left %s\n", name);
}

int main(void)
{
    static const char *folders[] = {"/work", "/tmp", "/dev/shm"};
    struct timeval dates[2] = {{1000000000, 0}, {1000000000, 0}};
    struct sockaddr_un here = {.sun_family = AF_UNIX, .sun_path = "\0adjudge-left"};
    int ends[2];
    char one;
    drop("/work/trace"), drop("/work/.hidden"), drop("/tmp/trace"), drop("/dev/shm/trace"), drop("/var/tmp/trace");
    mkdir("/work/deep", 0700), drop("/work/deep/trace");
    int shm = shmget(0x5eed, 4096, IPC_CREAT | 0666);
    char *page = shm < 0 ? (char *)-1 : shmat(shm, NULL, 0);
    if (page != (char *)-1)
        strcpy(page, "canary-of-the-first-run"), puts("left sysv shm");
    if (semget(0x5eed, 1, IPC_CREAT | 0666) >= 0)
        puts("left sysv sem");
    if (msgget(0x5eed, IPC_CREAT | 0666) >= 0)
        puts("left sysv msg");
    if (mq_open("/trace", O_CREAT | O_RDWR, 0666, NULL) != (mqd_t)-1)
        puts("left mq");
    if (shm_open("/posix-trace", O_CREAT | O_RDWR, 0666) >= 0)
        puts("left posix shm");
    for (int i = 0; i < 3; i++)
        if (utimes(folders[i], dates) == 0)
            printf("dated %s\n", folders[i]);
    fflush(stdout);
    if (pipe(ends))
        return 1;
    if (fork() == 0) {
        setsid();
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd >= 0)
            bind(fd, (struct sockaddr *)&here, sizeof(sa_family_t) + 13);
        if (write(ends[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            drop("/work/late"), usleep(1000);
    }
    return read(ends[0], &one, 1) == 1 ? 0 : 1;
}

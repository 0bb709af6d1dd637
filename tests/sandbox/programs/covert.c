/* Tries to pass 64 bits to another sandbox. argv = "send CHANNEL BITS" or "receive CHANNEL".
 *
 * Bit i is the state of the i-th of 64 objects that both sides can name: a host file, a range of a file, a key. The
 * sender sets it, prints "ready" and keeps it until its stdin ends. The receiver prints 0, 1, or ? if it was refused. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BITS = 64, KEY = 0x5EED00 };
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#define SET_HINT 1036 /* F_SET_RW_HINT */
#define GET_HINT 1035

static int files[BITS];
static char *names[BITS];
static unsigned found;

static int by_name(const struct dirent **left, const struct dirent **right) { return strcmp((*left)->d_name, (*right)->d_name); }

/* The same 64 files for both sides: in the order of their names, each at least one page long. */
static void collect(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < count && found < BITS; i++) {
        struct stat info;
        char *path = NULL;
        if (entries[i]->d_name[0] == '.' || asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0 || lstat(path, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode))
            collect(path);
        else if (S_ISREG(info.st_mode) && info.st_size >= 4096 && (files[found] = open(path, O_RDONLY)) >= 0)
            names[found++] = path;
    }
}

static char digit_of(bool is_set) { return is_set ? '1' : '0'; }

/* Locks. */
static void send_flock(int i) { flock(files[i], LOCK_SH); }
static char see_flock(int i)
{
    if (flock(files[i], LOCK_EX | LOCK_NB) == 0)
        return flock(files[i], LOCK_UN), '0';
    return errno == EWOULDBLOCK ? '1' : '?';
}
static struct flock range_of(int i, short type) { return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = i, .l_len = 1}; }
static void send_range(int i, int command)
{
    struct flock lock = range_of(i, F_RDLCK);
    fcntl(files[0], command, &lock);
}
static char see_range(int i, int command)
{
    struct flock lock = range_of(i, F_WRLCK);
    return fcntl(files[0], command, &lock) == 0 ? digit_of(lock.l_type != F_UNLCK) : '?';
}
static void send_posix(int i) { send_range(i, F_SETLK); }
static char see_posix(int i) { return see_range(i, F_GETLK); }
static void send_ofd(int i) { send_range(i, F_OFD_SETLK); }
static char see_ofd(int i) { return see_range(i, F_OFD_GETLK); }
static void set_hint(int i, uint64_t hint) { fcntl(files[i], SET_HINT, &hint); }
static void send_hint(int i) { set_hint(i, 5); }
static void end_hint(int i) { set_hint(i, 0); }
static char see_hint(int i)
{
    uint64_t hint = 0;
    return fcntl(files[i], GET_HINT, &hint) == 0 ? digit_of(hint == 5) : '?';
}

/* Page cache: drop_all evicts all pages before the sender loads those of its 1 bits. */
static void drop_all(void)
{
    for (unsigned i = 0; i < BITS; i++) {
        posix_fadvise(files[i], 0, 0, POSIX_FADV_RANDOM);
        posix_fadvise(files[i], 0, 0, POSIX_FADV_DONTNEED);
    }
}
static void send_page(int i)
{
    char byte;
    (void)!pread(files[i], &byte, 1, 0);
}
static char see_mincore(int i)
{
    unsigned char resident = 0;
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, files[i], 0);
    return page != MAP_FAILED && mincore(page, 4096, &resident) == 0 ? digit_of(resident & 1) : '?';
}
static char see_nowait(int i)
{
    char byte;
    struct iovec into = {&byte, 1};
    if (preadv2(files[i], &into, 1, 0, RWF_NOWAIT) == 1)
        return '1';
    return errno == EAGAIN ? '0' : '?';
}
static char see_cachestat(int i)
{
    uint64_t range[2] = {0, 4096}, counts[5] = {0};
    return syscall(451, files[i], range, counts, 0) == 0 ? digit_of(counts[0] != 0) : '?';
}

/* Names and keys. */
static void send_semaphore(int i) { semget(KEY + i, 1, IPC_CREAT | 0666); }
static char see_semaphore(int i) { return digit_of(semget(KEY + i, 1, 0) >= 0); }
static void end_semaphore(int i) { semctl(semget(KEY + i, 1, 0), 0, IPC_RMID); }
static void send_queue(int i) { msgget(KEY + i, IPC_CREAT | 0666); }
static char see_queue(int i) { return digit_of(msgget(KEY + i, 0) >= 0); }
static void end_queue(int i) { msgctl(msgget(KEY + i, 0), IPC_RMID, NULL); }
static void send_segment(int i) { shmget(KEY + i, 4096, IPC_CREAT | 0666); }
static char see_segment(int i) { return digit_of(shmget(KEY + i, 4096, 0) >= 0); }
static void end_segment(int i) { shmctl(shmget(KEY + i, 4096, 0), IPC_RMID, NULL); }
static const char *name_of(int i)
{
    static char name[32];
    snprintf(name, sizeof name, "/covert-%d", i);
    return name;
}
static void send_mqueue(int i)
{
    struct mq_attr small = {.mq_maxmsg = 1, .mq_msgsize = 8};
    mq_open(name_of(i), O_CREAT | O_RDWR, 0666, &small);
}
static char see_mqueue(int i)
{
    mqd_t queue = mq_open(name_of(i), O_RDONLY);
    return queue >= 0 ? mq_close(queue), '1' : errno == ENOENT ? '0' : '?';
}
static void end_mqueue(int i) { mq_unlink(name_of(i)); }
static void send_shm(int i) { shm_open(name_of(i), O_CREAT | O_RDWR, 0666); }
static char see_shm(int i) { return digit_of(shm_open(name_of(i), O_RDONLY, 0) >= 0); }
static void end_shm(int i) { shm_unlink(name_of(i)); }
static struct sockaddr_un address_of(int i)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name_of(i) + 1);
    return address;
}
static void send_socket(int i)
{
    struct sockaddr_un address = address_of(i);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        listen(fd, 8);
}
static char see_socket(int i)
{
    struct sockaddr_un address = address_of(i);
    return digit_of(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address) == 0);
}

/* File notifications: the sender opens the files of its 1 bits repeatedly, the receiver listens for a while. */
static void send_open(int i) { close(open(names[i], O_RDONLY)); }
static bool opened[BITS];
static bool heard;
static void hear(void)
{
    static char events[65536] __attribute__((aligned(8)));
    int fd = inotify_init1(IN_NONBLOCK), watches[BITS];
    if (fd < 0)
        return;
    heard = true;
    for (int i = 0; i < BITS; i++)
        watches[i] = inotify_add_watch(fd, names[i], IN_OPEN);
    for (int turn = 0; turn < 100; turn++) {
        usleep(5000);
        ssize_t size = read(fd, events, sizeof events);
        for (ssize_t at = 0; at < size;) {
            struct inotify_event *event = (struct inotify_event *)(events + at);
            for (int i = 0; i < BITS; i++)
                opened[i] |= watches[i] == event->wd;
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}
static char see_open(int i) { return heard ? digit_of(opened[i]) : '?'; }

static const struct channel {
    const char *name;
    void (*send)(int);
    char (*see)(int);
    void (*end)(int);
    void (*before_send)(void), (*before_see)(void);
    bool again; /* sent repeatedly */
} channels[] = {
    {"flock", send_flock, see_flock, NULL, NULL, NULL, false},
    {"posix_lock", send_posix, see_posix, NULL, NULL, NULL, false},
    {"ofd_lock", send_ofd, see_ofd, NULL, NULL, NULL, false},
    {"write_hint", send_hint, see_hint, end_hint, NULL, NULL, false},
    {"mincore", send_page, see_mincore, NULL, drop_all, NULL, false},
    {"nowait", send_page, see_nowait, NULL, drop_all, NULL, false},
    {"cachestat", send_page, see_cachestat, NULL, drop_all, NULL, false},
    {"semaphore", send_semaphore, see_semaphore, end_semaphore, NULL, NULL, false},
    {"message_queue", send_queue, see_queue, end_queue, NULL, NULL, false},
    {"segment", send_segment, see_segment, end_segment, NULL, NULL, false},
    {"posix_queue", send_mqueue, see_mqueue, end_mqueue, NULL, NULL, false},
    {"posix_shm", send_shm, see_shm, end_shm, NULL, NULL, false},
    {"abstract_socket", send_socket, see_socket, NULL, NULL, NULL, false},
    {"inotify", send_open, see_open, NULL, NULL, hear, true},
};

static void for_each_one(uint64_t bits, void (*action)(int))
{
    for (int i = 0; i < BITS; i++)
        if (bits >> i & 1)
            action(i);
}

static int send_bits(const struct channel *channel, uint64_t bits)
{
    struct pollfd over = {.fd = 0, .events = POLLIN};
    if (channel->before_send)
        channel->before_send();
    for_each_one(bits, channel->send);
    if (write(1, "ready\n", 6) != 6)
        return 1;
    while (poll(&over, 1, channel->again ? 2 : -1) == 0)
        for_each_one(bits, channel->send);
    if (channel->end)
        for_each_one(bits, channel->end);
    return 0;
}

static int receive_bits(const struct channel *channel)
{
    char seen[BITS + 1] = {0};
    if (channel->before_see)
        channel->before_see();
    for (int i = 0; i < BITS; i++)
        seen[i] = channel->see(i);
    return puts(seen) < 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    collect("/usr/share");
    if (found < BITS)
        return 3;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        if (strcmp(argv[2], channels[i].name) == 0)
            return argc > 3 ? send_bits(&channels[i], strtoull(argv[3], NULL, 16)) : receive_bits(&channels[i]);
    return 4;
}

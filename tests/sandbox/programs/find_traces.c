/* Looks for anything that the previous run in the slot left behind. */
#include "attempt.h"
#include <dirent.h>
#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>

static void breach(const char *what, const char *where)
{
    printf("breach %s %s\n", what, where);
    breaches++;
}

static void look(const char *folder)
{
    struct stat seen;
    DIR *names = opendir(folder);
    for (struct dirent *entry; names && (entry = readdir(names));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strcmp(entry->d_name, "find_traces"))
            breach(folder, entry->d_name);
    if (stat(folder, &seen) == 0 && (seen.st_mtime <= 1000000000 || seen.st_atime <= 1000000000))
        breach("old date of", folder);
    if (names)
        closedir(names);
}

/* A table of System V objects must contain only the heading. */
static void table(const char *name)
{
    char line[512];
    FILE *rows = fopen(name, "r");
    for (int count = 0; rows && fgets(line, sizeof line, rows); count++)
        if (count > 0)
            breach(name, line);
}

/* kill works for thread ids as well; those of pid 1 exist before any run. */
static int is_thread_of_init(int pid) { return syscall(SYS_tgkill, 1, pid, 0) == 0 || errno == EPERM; }

int main(void)
{
    struct sockaddr_un there = {.sun_family = AF_UNIX, .sun_path = "\0adjudge-left"};
    int processes = 0;
    look("/work"), look("/tmp"), look("/dev/shm"), look("/var/tmp");
    table("/proc/sysvipc/shm"), table("/proc/sysvipc/sem"), table("/proc/sysvipc/msg");
    if (shmget(0x5eed, 0, 0) >= 0 || semget(0x5eed, 0, 0) >= 0 || msgget(0x5eed, 0) >= 0)
        breach("System V object", "0x5eed");
    if (mq_open("/trace", O_RDONLY) != (mqd_t)-1)
        breach("message queue", "/trace");
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&there, sizeof(sa_family_t) + 13) == 0)
        breach("abstract socket", "adjudge-left");
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            int pid = atoi(entry->d_name);
            if (pid != getpid() && pid != getppid() && pid != 1)
                breach("process", entry->d_name);
            processes++;
        }
    for (int pid = 2; pid < 32768; pid++)
        if (pid != getpid() && pid != getppid() && (kill(pid, 0) == 0 || errno == EPERM) && !is_thread_of_init(pid))
            breach("process answers", "");
    return verdict();
}

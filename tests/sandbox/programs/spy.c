/* Tries to read files of others: argv = host paths; also files of the kernel and of other processes in /proc. */
#include "attempt.h"
#include <dirent.h>

static const char *path;

static int read_path(void)
{
    char one;
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -1;
    struct stat seen;
    if (fstat(fd, &seen) == 0 && S_ISDIR(seen.st_mode))
        return 0;
    ssize_t got = read(fd, &one, 1);
    if (got == 0)
        errno = ENODATA;
    return got > 0 ? 0 : -1;
}

static int follow(void)
{
    char target[256];
    return (int)readlink(path, target, sizeof target);
}

static void read_it(const char *name)
{
    char label[600];
    path = name;
    snprintf(label, sizeof label, "read %s", name);
    attempt(label, read_path);
}

static void spy_on(const char *pid)
{
    static const char *names[] = {"environ", "mem", "maps", "auxv", "stack", "syscall", "io", "map_files", "fd"};
    static const char *links[] = {"exe", "cwd", "root", "ns/mnt", "ns/net"};
    char name[300], label[400];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(name, sizeof name, "/proc/%s/%s", pid, names[i]);
        read_it(name);
    }
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(name, sizeof name, "/proc/%s/%s", pid, links[i]);
        snprintf(label, sizeof label, "follow %s", name);
        path = name;
        attempt(label, follow);
    }
}

int main(int argc, char **argv)
{
    static const char *kernel[] = {"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root", "/root/.ssh", "/root/.bashrc",
        "/home", "/var/lib", "/var/log", "/run/secrets", "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/keys",
        "/proc/kpagecount", "/proc/vmallocinfo", "/sys/kernel/debug", "/sys/fs/cgroup/memory", "/sys/kernel/security"};
    for (int i = 1; i < argc; i++)
        read_it(argv[i]);
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++)
        read_it(kernel[i]);
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && atoi(entry->d_name) != getpid())
            spy_on(entry->d_name);
    return verdict();
}

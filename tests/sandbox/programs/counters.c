/* Looks for host counters that change: reads sysinfo and every file of /proc that belongs to no process, before and
 * after a line on stdin, and prints the names of those that differ. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FILES = 4096, BYTES = 16384 };
static char *paths[FILES], *before[FILES];
static long sizes[FILES];
static int count;

static long take(const char *path, char *text)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    long size = fd < 0 ? -1 : read(fd, text, BYTES);
    if (fd >= 0)
        close(fd);
    return size;
}

static void collect(const char *folder, int depth)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && count < FILES && (entry = readdir(entries));) {
        struct stat info;
        char *path = NULL;
        if (entry->d_name[0] == '.' || (depth == 0 && entry->d_name[0] >= '0' && entry->d_name[0] <= '9'))
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0 || lstat(path, &info) != 0)
            continue;
        /* uuid is random by design; kmsg would consume the kernel log. */
        if (strcmp(entry->d_name, "uuid") == 0 || strcmp(entry->d_name, "kmsg") == 0)
            continue;
        if (S_ISDIR(info.st_mode))
            collect(path, depth + 1);
        else if (S_ISREG(info.st_mode))
            paths[count++] = path;
    }
    if (entries)
        closedir(entries);
}

static void ask(struct sysinfo *info)
{
    memset(info, 0, sizeof *info);
    sysinfo(info);
    info->uptime = 0;
}

int main(void)
{
    static char text[BYTES];
    struct sysinfo first, second;
    struct statfs disk;
    collect("/proc", 0);
    for (int i = 0; i < count; i++)
        if ((sizes[i] = take(paths[i], text)) > 0)
            before[i] = memcpy(malloc((size_t)sizes[i]), text, (size_t)sizes[i]);
    ask(&first);
    printf("ready\n");
    fflush(stdout);
    (void)getchar();
    for (int i = 0; i < count; i++) {
        long size = take(paths[i], text);
        if (size != sizes[i] || (size > 0 && memcmp(text, before[i], (size_t)size) != 0))
            printf("changed %s\n", paths[i]);
    }
    ask(&second);
    if (memcmp(&first, &second, sizeof first) != 0)
        printf("changed sysinfo\n");
    if (statfs("/usr", &disk) == 0)
        printf("changed statfs\n");
    printf("read %d\n", count);
    return 0;
}

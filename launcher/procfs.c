/* Replacement files are created in a directory beside the program's root and bind-mounted over the kernel's files. The
 * list names what is visible, so that new entries of a newer kernel are hidden. */
#include "procfs.h"

#include "rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define REPLACEMENTS "../procfs" /* relative to the program's root; /procfs for the agent */
#define TEXT_BYTES (512u * 1024)

/* Entries that depend only on the reader's namespaces, or that never change. */
static const char *const visible_entries[] = {"self",        "thread-self", "mounts",   "net",     "sysvipc", "filesystems",
                                              "version",     "consoles",    "devices",  "dma",     "execdomains", "misc"};
static const char *const replaced_entries[] = {"cpuinfo", "loadavg", "meminfo", "stat", "sys", "uptime"};

static bool is_among(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool is_visible(const char *name) {
    return name[0] == '.' || (name[0] >= '0' && name[0] <= '9') || is_among(name, visible_entries, COUNT(visible_entries));
}

/* All processors idle since boot. */
static bool write_stat(int dir_fd, char *text) {
    static const char zeros[] = "0 0 0 0 0 0 0 0 0 0\n";
    int used = snprintf(text, TEXT_BYTES, "cpu  %s", zeros), count = get_nprocs();
    for (int cpu = 0; cpu < count && (size_t)used < TEXT_BYTES - 256; cpu++)
        used += snprintf(text + used, 64, "cpu%d %s", cpu, zeros);
    snprintf(text + used, 128, "intr 0\nctxt 0\nbtime 0\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0\n");
    return rootfs_write_file(dir_fd, "stat", text);
}

/* All memory free. */
static bool write_meminfo(int dir_fd, char *text) {
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return false;
    unsigned long long total_kb = (unsigned long long)info.totalram * info.mem_unit / 1024;
    snprintf(text, TEXT_BYTES,
             "MemTotal:       %llu kB\nMemFree:        %llu kB\nMemAvailable:   %llu kB\nBuffers:        0 kB\n"
             "Cached:         0 kB\nSwapCached:     0 kB\nSwapTotal:      0 kB\nSwapFree:       0 kB\nShmem:          0 kB\n",
             total_kb, total_kb, total_kb);
    return rootfs_write_file(dir_fd, "meminfo", text);
}

/* Without the current clock rate, which depends on the load. */
static bool write_cpuinfo(int dir_fd, char *text) {
    FILE *source = fopen("/proc/cpuinfo", "re");
    char line[8192];
    size_t used = 0;
    if (source == NULL)
        return errno == ENOENT;
    text[0] = '\0';
    while (fgets(line, sizeof line, source) != NULL) {
        size_t length = strlen(line);
        if (used + length >= TEXT_BYTES)
            break;
        if (strncmp(line, "cpu MHz", 7) == 0)
            continue;
        memcpy(text + used, line, length + 1);
        used += length;
    }
    fclose(source);
    return rootfs_write_file(dir_fd, "cpuinfo", text);
}

/* Files that C libraries read; the rest of /proc/sys is hidden. */
static bool write_constants(int dir_fd, char *text) {
    struct utsname kernel;
    int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && read_once(fd, text, TEXT_BYTES) > 0;
    if (fd >= 0)
        close(fd);
    if (mkdirat(dir_fd, "sys", 0755) != 0 || mkdirat(dir_fd, "sys/kernel", 0755) != 0 || mkdirat(dir_fd, "sys/vm", 0755) != 0 ||
        uname(&kernel) != 0)
        return false;
    if (known && !rootfs_write_file(dir_fd, "sys/vm/overcommit_memory", text))
        return false;
    snprintf(text, TEXT_BYTES, "%s\n", kernel.release);
    return rootfs_write_file(dir_fd, "sys/kernel/osrelease", text);
}

/* The host's /proc is still visible here. */
static bool write_replacements(void) {
    char *text = malloc(TEXT_BYTES);
    bool done = text != NULL && mkdir(REPLACEMENTS, 0755) == 0;
    int dir_fd = done ? open(REPLACEMENTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    done = dir_fd >= 0 && mkdirat(dir_fd, "empty", 0555) == 0 && rootfs_write_file(dir_fd, "loadavg", "0.00 0.00 0.00 1/1 1\n") &&
           rootfs_write_file(dir_fd, "uptime", "1.00 1.00\n") && write_stat(dir_fd, text) && write_meminfo(dir_fd, text) &&
           write_cpuinfo(dir_fd, text) && write_constants(dir_fd, text);
    if (dir_fd >= 0)
        close(dir_fd);
    free(text);
    return done;
}

/* Entries that only root can access need no mask, because no program is root, and every mask costs a mount. */
static bool mask(int proc_fd, const char *name) {
    char replacement[512], path[512];
    struct stat info;
    if (fstatat(proc_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || (info.st_mode & (S_IROTH | S_IWOTH)) == 0)
        return true;
    snprintf(path, sizeof path, "proc/%s", name);
    snprintf(replacement, sizeof replacement, REPLACEMENTS "/%s", name);
    const char *empty = S_ISDIR(info.st_mode) ? REPLACEMENTS "/empty" : "dev/null";
    const char *source = is_among(name, replaced_entries, COUNT(replaced_entries)) ? replacement : empty;
    return mount(source, path, NULL, MS_BIND, NULL) == 0;
}

static bool mask_all(int root_fd) {
    DIR *entries = fdopendir(openat(root_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;
    bool done = entries != NULL;
    while (done && (entry = readdir(entries)) != NULL)
        done = is_visible(entry->d_name) || mask(dirfd(entries), entry->d_name);
    if (entries != NULL)
        closedir(entries);
    return done;
}

/* Hides processes of other users and processes that the reader may not trace; hidepid=2 for older kernels. */
static bool mount_proc(const char *options) {
    return mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == 0;
}

bool procfs_mount_masked(int root_fd, struct slot *slot, struct fault *fault) {
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    if (mkdirat(root_fd, "proc", 0555) != 0)
        return fail_at(fault, "root_proc", -1);
    slot->has_proc = mount_proc("hidepid=ptraceable") || mount_proc("hidepid=2");
    if (!slot->has_proc)
        return true;
    slot->proc_rw_fd = open_tree(root_fd, "proc", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (slot->proc_rw_fd < 0)
        return fail_at(fault, "root_proc", -1);
    if (!write_replacements() || !mask_all(root_fd))
        return fail_at(fault, "root_proc_mask", -1);
    if (mount_setattr(root_fd, "proc", AT_RECURSIVE, &attr, sizeof attr) != 0) /* including the masks */
        return fail_at(fault, "root_proc", -1);
    return true;
}

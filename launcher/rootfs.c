/* Builds the root file system of the box, once per agent and before any program runs. */
#include "rootfs.h"

#include "deferred_umount.h"
#include "procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

/* As on the host: a symbolic link stays a link, a directory becomes a read-only bind mount. */
static const char *const system_dirs[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

/* Parts of /etc that compilers and runtimes need and that contain no users or secrets of the host. */
static const char *const etc_entries[] = {"alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
                                          "java-8-openjdk", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk",
                                          "fpc.cfg", "fpc-3.2.2.cfg", "mono", "ghc", "nsswitch.conf", "protocols",
                                          "services", "locale.alias", "ssl/openssl.cnf"};

static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};

/* Links in /dev, target first. Shared memory is in /tmp, with its size limit, and is removed with it. */
static const char *const device_links[][2] = {{"/proc/self/fd", "fd"},
                                              {"/proc/self/fd/0", "stdin"},
                                              {"/proc/self/fd/1", "stdout"},
                                              {"/proc/self/fd/2", "stderr"},
                                              {"/tmp", "shm"}};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

bool rootfs_write_file(int dir_fd, const char *path, const char *text) {
    int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
    bool done = fd >= 0 && write_all(fd, text, strlen(text));
    if (fd >= 0)
        close(fd);
    return done;
}

int rootfs_clone_tree(const char *path, uint64_t attributes) {
    struct mount_attr attr = {.attr_set = attributes};
    int fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (fd < 0)
        return -1;
    if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Host paths are absolute, box paths are relative to root_fd: both are visible while the root is built. */
static bool bind_read_only(int root_fd, const char *host_path, const char *box_path, uint64_t attributes) {
    struct stat info;
    if (stat(host_path, &info) != 0)
        return errno == ENOENT || errno == EACCES;
    if (S_ISDIR(info.st_mode)) {
        if (mkdirat(root_fd, box_path, 0755) != 0 && errno != EEXIST)
            return false;
    } else {
        int fd = openat(root_fd, box_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
        if (fd < 0)
            return false;
        close(fd);
    }
    int tree = rootfs_clone_tree(host_path, attributes);
    if (tree < 0)
        return false;
    bool done = move_mount(tree, "", root_fd, box_path, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    int saved = errno;
    close(tree);
    errno = saved;
    return done;
}

static bool bind_system_directories(int root_fd, struct fault *fault) {
    char target[PATH_MAX];
    for (size_t i = 0; i < COUNT(system_dirs); i++) {
        ssize_t length = readlink(system_dirs[i], target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            if (symlinkat(target, root_fd, system_dirs[i] + 1) != 0)
                return fail_at(fault, "root_system", (int)i);
        } else if (!bind_read_only(root_fd, system_dirs[i], system_dirs[i] + 1, READ_ONLY)) {
            return fail_at(fault, "root_system", (int)i);
        }
    }
    return true;
}

/* Users and host names of the box are constants, so that those of the host are not visible. */
static bool write_identity(int root_fd, const struct slot *slot, struct fault *fault) {
    char text[256];
    snprintf(text, sizeof text, "root:x:0:0:root:/:/bin/false\nbox:x:%u:%u:box:" BOX_WORK ":/bin/sh\n", slot->uid, slot->gid);
    if (!rootfs_write_file(root_fd, "etc/passwd", text))
        return fail_at(fault, "root_etc", -1);
    snprintf(text, sizeof text, "root:x:0:\nbox:x:%u:\n", slot->gid);
    if (!rootfs_write_file(root_fd, "etc/group", text) || !rootfs_write_file(root_fd, "etc/hosts", "127.0.0.1 localhost\n") ||
        !rootfs_write_file(root_fd, "etc/hostname", "box\n"))
        return fail_at(fault, "root_etc", -1);
    return true;
}

static bool write_etc(int root_fd, const struct slot *slot, struct fault *fault) {
    char host[64], box[64];
    if (mkdirat(root_fd, "etc", 0755) != 0 || mkdirat(root_fd, "etc/ssl", 0755) != 0)
        return fail_at(fault, "root_etc", -1);
    for (size_t i = 0; i < COUNT(etc_entries); i++) {
        snprintf(host, sizeof host, "/etc/%s", etc_entries[i]);
        snprintf(box, sizeof box, "etc/%s", etc_entries[i]);
        if (!bind_read_only(root_fd, host, box, READ_ONLY))
            return fail_at(fault, "root_etc", (int)i);
    }
    return write_identity(root_fd, slot, fault);
}

static bool bind_devices(int root_fd, struct fault *fault) {
    char host[32], box[32];
    if (mkdirat(root_fd, "dev", 0755) != 0)
        return fail_at(fault, "root_dev", -1);
    for (size_t i = 0; i < COUNT(devices); i++) {
        snprintf(host, sizeof host, "/dev/%s", devices[i]);
        snprintf(box, sizeof box, "dev/%s", devices[i]);
        /* Read-only protects the host's device node; writing to the device still works. */
        if (!bind_read_only(root_fd, host, box, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC))
            return fail_at(fault, "root_dev", (int)i);
    }
    for (size_t i = 0; i < COUNT(device_links); i++) {
        snprintf(box, sizeof box, "dev/%s", device_links[i][1]);
        if (symlinkat(device_links[i][0], root_fd, box) != 0)
            return fail_at(fault, "root_dev_link", (int)i);
    }
    return true;
}

/* pivot_root(".", "."): the old root is mounted on top of the new one and unmounted immediately. */
static bool enter(struct slot *slot, struct fault *fault) {
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    if (chdir("/tmp") != 0 || syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return fail_at(fault, "root_pivot", -1);
    slot->root_rw_fd = open_tree(AT_FDCWD, BOX_ROOT, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (slot->root_rw_fd < 0 || !deferred_umount_init() || mount_setattr(AT_FDCWD, BOX_ROOT, 0, &attr, sizeof attr) != 0 ||
        mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof attr) != 0)
        return fail_at(fault, "root_read_only", -1);
    return true;
}

bool rootfs_build(struct slot *slot, struct fault *fault) {
    slot->proc_rw_fd = slot->root_rw_fd = -1;
    slot->box_view_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC); /* the host's /proc is still visible here */
    if (slot->box_view_fd < 0)
        return fail_at(fault, "root_view", -1);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return fail_at(fault, "root_private", -1);
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID, "size=2m,nr_inodes=1k,mode=755") != 0 || mkdir("/tmp" BOX_ROOT, 0755) != 0 ||
        mount("tmpfs", "/tmp" BOX_ROOT, "tmpfs", MS_NOSUID, "size=1m,nr_inodes=4k,mode=755") != 0 || chdir("/tmp" BOX_ROOT) != 0)
        return fail_at(fault, "root_tmpfs", -1);
    int root_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return fail_at(fault, "root_tmpfs", -1);
    bool done = bind_system_directories(root_fd, fault) && write_etc(root_fd, slot, fault) && bind_devices(root_fd, fault) &&
                procfs_mount_masked(root_fd, slot, fault);
    if (done && (mkdirat(root_fd, &BOX_WORK[1], 0755) != 0 || mkdirat(root_fd, &BOX_TMP[1], 0755) != 0))
        done = fail_at(fault, "root_dirs", -1);
    close(root_fd);
    return done && enter(slot, fault);
}

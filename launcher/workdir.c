/* Work directory, /tmp, input files and mounts of a run. Called by the agent between programs, so no other process is
 * in the box. */
#include "workdir.h"

#include "deferred_umount.h"
#include "rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIND_ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static bool needs_host_view(const struct request *request) {
    for (size_t i = 0; i < request->file_count; i++)
        if (request->files[i].kind == FILE_BIND)
            return true;
    return request->mount_count > 0 || request->stdin_kind == STDIN_PATH;
}

/* Opens the file of a detached bind mount through that mount, then closes the mount. */
static int open_view(int tree) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", tree);
    int fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int saved = errno;
    close(tree);
    errno = saved;
    return fd;
}

/* Opened through its own read-only bind mount: a program that reopens /proc/self/fd/0 for writing gets EROFS, even if
 * it has the uid of the file's owner. */
static int open_stdin(const char *path, uint64_t size_max) {
    struct stat info;
    int tree = rootfs_clone_tree(path, BIND_ATTRIBUTES | MOUNT_ATTR_RDONLY);
    if (tree < 0)
        return -1;
    int fd = open_view(tree);
    if (fd < 0)
        return -1;
    int error = 0;
    if (fstat(fd, &info) != 0)
        error = errno;
    else if (!S_ISREG(info.st_mode))
        error = EINVAL;
    else if ((uint64_t)info.st_size > size_max)
        error = EFBIG;
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* A file that everyone may execute is bind-mounted. A private file is opened, to be copied like other input. The
 * decision uses the opened file, so that its name cannot be exchanged in between. */
static bool open_if_private(int *tree, bool *is_bound) {
    struct stat info;
    if (fstat(*tree, &info) != 0)
        return false;
    if (!S_ISREG(info.st_mode)) {
        errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    *is_bound = (info.st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH);
    if (!*is_bound)
        *tree = open_view(*tree);
    return *tree >= 0;
}

static bool clone_host_trees(struct workdir *workdir, const struct request *request, struct fault *fault) {
    for (size_t i = 0; i < request->file_count; i++) {
        if (request->files[i].kind != FILE_BIND)
            continue;
        workdir->file_trees[i] = rootfs_clone_tree(request->files[i].source, BIND_ATTRIBUTES | MOUNT_ATTR_RDONLY);
        if (workdir->file_trees[i] < 0 || !open_if_private(&workdir->file_trees[i], &workdir->file_bound[i]))
            return fail_at(fault, "file", (int)i);
    }
    for (size_t i = 0; i < request->mount_count; i++) {
        uint64_t attributes = request->mounts[i].writable ? BIND_ATTRIBUTES : BIND_ATTRIBUTES | MOUNT_ATTR_RDONLY;
        workdir->mount_trees[i] = rootfs_clone_tree(request->mounts[i].source, attributes);
        if (workdir->mount_trees[i] < 0)
            return fail_at(fault, "mount", (int)i);
    }
    if (request->stdin_kind == STDIN_PATH) {
        workdir->stdin_fd = open_stdin(request->stdin_path, request->limits.input_bytes);
        if (workdir->stdin_fd < 0)
            return fail_at(fault, "stdin", -1);
    }
    return true;
}

/* Host paths can only be resolved in the host's mount namespace, so the agent enters it and returns. */
static bool open_host_files(struct workdir *workdir, const struct slot *slot, const struct request *request, struct fault *fault) {
    if (!needs_host_view(request))
        return true;
    if (setns(slot->host_view_fd, CLONE_NEWNS) != 0)
        return fail_at(fault, "host_view", -1);
    bool done = clone_host_trees(workdir, request, fault);
    if (setns(slot->box_view_fd, CLONE_NEWNS) != 0)
        return fail_at(fault, "box_view", -1);
    return done;
}

#define TMPFS_FLAGS (MS_NOSUID | MS_NODEV | MS_NOATIME)

static bool mount_tmpfs(const struct slot *slot, const struct limits *limits, const char *point, const char *mode) {
    char options[160];
    snprintf(options, sizeof options, "size=%" PRIu64 ",nr_inodes=%" PRIu64 ",mode=%s,uid=%u,gid=%u", limits->work_bytes,
             limits->work_inodes + 1, mode, slot->uid, slot->gid);
    return mount("tmpfs", point, "tmpfs", TMPFS_FLAGS, options) == 0;
}

static bool resize_tmpfs(const struct limits *limits, const char *point) {
    char options[96];
    snprintf(options, sizeof options, "size=%" PRIu64 ",nr_inodes=%" PRIu64, limits->work_bytes, limits->work_inodes + 1);
    return mount(NULL, point, NULL, MS_REMOUNT | TMPFS_FLAGS, options) == 0;
}

static bool open_mount_point(const char *point, int *fd) {
    if (*fd < 0)
        *fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *fd >= 0;
}

void workdir_init(struct workdir *workdir) { workdir->work_fd = workdir->tmp_fd = workdir->stdin_fd = -1; }

bool workdir_mount(struct workdir *workdir, const struct slot *slot, const struct limits *limits, struct fault *fault) {
    bool same = workdir->size_is_known && workdir->size_bytes == limits->work_bytes && workdir->size_inodes == limits->work_inodes;
    workdir->size_is_known = false; /* until both are resized, because a failure in between leaves them unequal */
    if (workdir->work_mounted ? !same && !resize_tmpfs(limits, BOX_ROOT BOX_WORK)
                              : !mount_tmpfs(slot, limits, BOX_ROOT BOX_WORK, "0700"))
        return fail_at(fault, "work_directory", -1);
    workdir->work_mounted = true;
    if (workdir->tmp_mounted ? !same && !resize_tmpfs(limits, BOX_ROOT BOX_TMP)
                             : !mount_tmpfs(slot, limits, BOX_ROOT BOX_TMP, "1777"))
        return fail_at(fault, "tmp_directory", -1);
    workdir->tmp_mounted = true;
    if (!open_mount_point(BOX_ROOT BOX_WORK, &workdir->work_fd))
        return fail_at(fault, "work_directory", -1);
    if (!open_mount_point(BOX_ROOT BOX_TMP, &workdir->tmp_fd))
        return fail_at(fault, "tmp_directory", -1);
    workdir->size_bytes = limits->work_bytes;
    workdir->size_inodes = limits->work_inodes;
    workdir->size_is_known = true;
    return true;
}

static bool give_to_program(const struct slot *slot, int dir_fd, const char *path) {
    return slot->rootless || fchownat(dir_fd, path, slot->uid, slot->gid, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool make_parents(const struct slot *slot, int dir_fd, const char *name) {
    char path[REQUEST_NAME_MAX + 1];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%.*s", (int)(slash - name), name);
        if (mkdirat(dir_fd, path, 0755) == 0 ? !give_to_program(slot, dir_fd, path) : errno != EEXIST)
            return false;
    }
    return true;
}

static bool copy_fd(int from, int to) {
    off_t offset = 0;
    for (;;) {
        ssize_t done = sendfile(to, from, &offset, 1 << 20);
        if (done < 0 && errno != EINTR)
            return false;
        if (done == 0)
            return true;
    }
}

static bool write_input_file(const struct workdir *workdir, const struct slot *slot, const struct request *request, size_t i,
                       const int *fds) {
    const struct input_file *file = &request->files[i];
    int tree = workdir->file_trees[i];
    bool is_bound = file->kind == FILE_BIND && workdir->file_bound[i];
    if (!make_parents(slot, workdir->work_fd, file->name))
        return false;
    int fd = openat(workdir->work_fd, file->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    file->executable ? 0755 : 0644);
    if (fd < 0)
        return false;
    bool done = true;
    if (is_bound)
        done = move_mount(tree, "", workdir->work_fd, file->name, MOVE_MOUNT_F_EMPTY_PATH) == 0;
    else if (file->kind != FILE_INLINE)
        done = copy_fd(file->kind == FILE_BIND ? tree : fds[file->fd_index], fd);
    else
        done = write_all(fd, file->data, file->size);
    if (done && !is_bound && !slot->rootless)
        done = fchown(fd, slot->uid, slot->gid) == 0;
    int saved = errno;
    close(fd);
    errno = saved;
    return done;
}

static bool write_input_files(const struct workdir *workdir, const struct slot *slot, const struct request *request,
                        const int *fds, struct fault *fault) {
    for (size_t i = 0; i < request->file_count; i++)
        if (!write_input_file(workdir, slot, request, i, fds))
            return fail_at(fault, "file", (int)i);
    return true;
}

/* Creates a mount point below dir_fd. Returns how many path components were created, -1 on failure. */
static int create_mount_point(int dir_fd, const char *path, bool directory) {
    char part[REQUEST_NAME_MAX + 1];
    int created = 0;
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdirat(dir_fd, part, 0755) == 0)
            created++;
        else if (errno != EEXIST)
            return -1;
    }
    if (directory)
        return mkdirat(dir_fd, path, 0755) == 0 ? created + 1 : -1;
    int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (fd < 0)
        return -1;
    close(fd);
    return created + 1;
}

static void path_in_box(char *path, size_t size, const char *target) { snprintf(path, size, BOX_ROOT "%s", target); }

/* In /work and /tmp, a mount point is removed with the tmpfs. Elsewhere it is created through the agent's writable
 * mount of the root. */
static bool create_mount_target(struct workdir *workdir, const struct slot *slot, const char *target, bool directory, size_t i) {
    bool fresh = strncmp(target, BOX_WORK "/", sizeof BOX_WORK) == 0 || strncmp(target, BOX_TMP "/", sizeof BOX_TMP) == 0;
    int box_fd = fresh ? open(BOX_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC) : slot->root_rw_fd;
    int created = create_mount_point(box_fd, target + 1, directory);
    if (fresh)
        close(box_fd);
    else if (created > 0)
        workdir->created_depth[i] = created;
    return created >= 0;
}

static bool attach(struct workdir *workdir, const struct slot *slot, const struct request *request, size_t i) {
    char path[sizeof BOX_ROOT + REQUEST_NAME_MAX];
    struct stat source, point;
    path_in_box(path, sizeof path, request->mounts[i].target);
    if (fstat(workdir->mount_trees[i], &source) != 0)
        return false;
    if (lstat(path, &point) != 0 && !create_mount_target(workdir, slot, request->mounts[i].target, S_ISDIR(source.st_mode), i))
        return false;
    if (move_mount(workdir->mount_trees[i], "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return false;
    workdir->mount_attached[i] = true;
    return true;
}

static bool attach_all(struct workdir *workdir, const struct slot *slot, const struct request *request, struct fault *fault) {
    for (size_t i = 0; i < request->mount_count; i++)
        if (!attach(workdir, slot, request, i))
            return fail_at(fault, "mount", (int)i);
    return true;
}

/* Directories that were mounted in advance would show when the previous run ended. */
static bool set_timestamps(const struct workdir *workdir, struct fault *fault) {
    if (futimens(workdir->work_fd, NULL) != 0)
        return fail_at(fault, "work_directory", -1);
    return futimens(workdir->tmp_fd, NULL) == 0 || fail_at(fault, "tmp_directory", -1);
}

bool workdir_prepare(struct workdir *workdir, const struct slot *slot, const struct request *request, const int *fds,
                     struct fault *fault) {
    for (size_t i = 0; i < request->file_count; i++)
        workdir->file_trees[i] = -1;
    for (size_t i = 0; i < request->mount_count; i++) {
        workdir->mount_trees[i] = -1;
        workdir->mount_attached[i] = false;
        workdir->created_depth[i] = 0;
    }
    if (!open_host_files(workdir, slot, request, fault))
        return false;
    bool mounted_before = workdir->work_mounted;
    if (!workdir_mount(workdir, slot, &request->limits, fault))
        return false;
    if (mounted_before && !set_timestamps(workdir, fault))
        return false;
    return write_input_files(workdir, slot, request, fds, fault) && attach_all(workdir, slot, request, fault);
}

/* Removes the path components of a mount point that were created in the root. */
static bool remove_mount_point(const struct slot *slot, const char *target, int depth) {
    char path[REQUEST_NAME_MAX + 1];
    snprintf(path, sizeof path, "%s", target + 1);
    for (; depth > 0; depth--) {
        if (unlinkat(slot->root_rw_fd, path, 0) != 0 && unlinkat(slot->root_rw_fd, path, AT_REMOVEDIR) != 0 && errno != ENOTEMPTY)
            return false;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            break;
        *slash = '\0';
    }
    return true;
}

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

bool workdir_release(struct workdir *workdir, const struct slot *slot, const struct request *request) {
    bool clean = true;
    close_fd(&workdir->work_fd);
    close_fd(&workdir->tmp_fd);
    close_fd(&workdir->stdin_fd);
    for (size_t i = request->mount_count; i-- > 0;) {
        char path[sizeof BOX_ROOT + REQUEST_NAME_MAX];
        path_in_box(path, sizeof path, request->mounts[i].target);
        close_fd(&workdir->mount_trees[i]);
        if (workdir->mount_attached[i] && !deferred_umount_add(path))
            clean = false;
        if (workdir->created_depth[i] > 0 && !remove_mount_point(slot, request->mounts[i].target, workdir->created_depth[i]))
            clean = false;
    }
    for (size_t i = 0; i < request->file_count; i++)
        close_fd(&workdir->file_trees[i]);
    if (workdir->work_mounted && !deferred_umount_add(BOX_ROOT BOX_WORK))
        clean = false;
    if (workdir->tmp_mounted && !deferred_umount_add(BOX_ROOT BOX_TMP))
        clean = false;
    workdir->work_mounted = workdir->tmp_mounted = false;
    return clean;
}

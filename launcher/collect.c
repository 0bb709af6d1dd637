/* Copies files out of the work directory. All processes of the run are dead, so files do not change. The collector must
 * not follow links, enter mounts, block on a pipe, or copy more than the work directory may contain. */
#include "collect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 16

struct budget {
    uint64_t bytes, files;
};

static int open_beneath(int dir_fd, const char *name) {
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    return (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);
}

static void note(struct collected *result, int err) {
    if (result->err == 0)
        result->err = err;
}

static bool copy_content(int from, int to) {
    for (;;) {
        ssize_t done = sendfile(to, from, NULL, 1 << 20);
        if (done == 0)
            return true;
        if (done < 0 && errno != EINTR)
            return false;
    }
}

static void copy_file(int from, const struct stat *info, int target_fd, const char *name, struct collected *result,
                      struct budget *budget) {
    uint64_t size = (uint64_t)info->st_size;
    if (size > budget->bytes || budget->files == 0) {
        note(result, EFBIG);
        return;
    }
    budget->bytes -= size;
    budget->files--;
    int to = openat(target_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                    (info->st_mode & S_IXUSR) != 0 ? 0755 : 0644);
    if (to < 0 || !copy_content(from, to)) {
        note(result, errno);
    } else {
        result->files++;
        result->bytes += size;
    }
    if (to >= 0)
        close(to);
}

static void copy_entry(int dir_fd, const char *name, int target_fd, int depth, struct collected *result, struct budget *budget);

static void copy_dir(int from, int target_fd, const char *name, int depth, struct collected *result, struct budget *budget) {
    struct dirent *entry;
    if (depth == DEPTH_MAX || (mkdirat(target_fd, name, 0755) != 0 && errno != EEXIST)) {
        note(result, depth == DEPTH_MAX ? ENAMETOOLONG : errno);
        return;
    }
    int to = openat(target_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = to >= 0 ? fdopendir(dup(from)) : NULL;
    if (entries == NULL)
        note(result, errno);
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            copy_entry(from, entry->d_name, to, depth + 1, result, budget);
    if (entries != NULL)
        closedir(entries);
    if (to >= 0)
        close(to);
}

static void copy_entry(int dir_fd, const char *name, int target_fd, int depth, struct collected *result,
                       struct budget *budget) {
    struct stat info;
    int from = open_beneath(dir_fd, name);
    if (from < 0 || fstat(from, &info) != 0) {
        note(result, errno);
    } else if (S_ISREG(info.st_mode)) {
        copy_file(from, &info, target_fd, name, result, budget);
    } else if (S_ISDIR(info.st_mode)) {
        copy_dir(from, target_fd, name, depth, result, budget);
    } else {
        note(result, EINVAL);
    }
    if (from >= 0)
        close(from);
}

/* Creates the parent directories of a name in the target. */
static bool make_parents(int target_fd, const char *name) {
    char path[REQUEST_NAME_MAX + 1];
    for (const char *slash = strchr(name, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%.*s", (int)(slash - name), name);
        if (mkdirat(target_fd, path, 0755) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

void collect_all(int work_fd, int target_fd, const struct request *request, struct collected *results) {
    struct budget budget = {.bytes = request->limits.work_bytes, .files = request->limits.work_inodes};
    for (size_t i = 0; i < request->collect_count; i++) {
        struct stat info;
        results[i] = (struct collected){0};
        /* Check first, so that a missing name does not leave empty parent directories. */
        if (fstatat(work_fd, request->collect[i], &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !make_parents(target_fd, request->collect[i]))
            results[i].err = errno;
        else
            copy_entry(work_fd, request->collect[i], target_fd, 0, &results[i], &budget);
    }
}

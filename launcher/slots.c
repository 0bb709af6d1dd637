/* Slot locks and removal of leftovers. A held lock proves that the owner lives; process ids are not used. */
#include "slots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "adjudge-"

static int open_locked(int state_fd, int number) {
    char file[32];
    snprintf(file, sizeof file, "slot-%d", number);
    int fd = openat(state_fd, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The file lists one directory per line. Only directories with our prefix are removed, whatever the file contains. */
static void remove_leftovers(int lock_fd) {
    char text[CGROUP_DIRS_MAX * (CGROUP_PATH_MAX + 1) + 1];
    char *rest = text, *line;
    if (read_text(lock_fd, text, sizeof text) <= 0)
        return;
    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *last = strrchr(line, '/');
        if (line[0] == '/' && last != NULL && strncmp(last + 1, PREFIX, strlen(PREFIX)) == 0)
            cgroup_remove_dir(line);
    }
    slot_clear_record(lock_fd);
}

/* Free slots whose file is not empty: their owner was killed before it could clean up. */
static void remove_leftovers_of_free_slots(int state_fd) {
    DIR *entries = fdopendir(openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *entry;
    struct stat info;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (strncmp(entry->d_name, "slot-", 5) != 0)
            continue;
        if (fstatat(state_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_size == 0)
            continue;
        int fd = open_locked(state_fd, atoi(entry->d_name + 5));
        if (fd >= 0) {
            remove_leftovers(fd);
            close(fd);
        }
    }
    if (entries != NULL)
        closedir(entries);
}

static int open_state_dir(const char *state_dir) {
    struct stat info;
    if (mkdir(state_dir, 0700) != 0 && errno != EEXIST)
        return -1;
    int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        return -1;
    if (info.st_uid != geteuid() || (info.st_mode & 022) != 0) {
        errno = EPERM; /* other users could add names of directories to be removed */
        close(fd);
        return -1;
    }
    return fd;
}

bool slot_acquire(const char *state_dir, int *number, int *lock_fd, char *name, size_t name_size, struct fault *fault) {
    struct stat info;
    int state_fd = open_state_dir(state_dir);
    if (state_fd < 0 || fstat(state_fd, &info) != 0)
        return fail_at(fault, "state_dir", -1);
    *lock_fd = -1;
    for (*number = 0; *number < SLOTS_MAX && *lock_fd < 0; ++*number)
        *lock_fd = open_locked(state_fd, *number);
    --*number;
    if (*lock_fd < 0) {
        close(state_fd);
        return fail_at(fault, "slot_lock", -1);
    }
    remove_leftovers(*lock_fd);
    remove_leftovers_of_free_slots(state_fd);
    close(state_fd);
    /* The inode of the state directory is part of the name, so that two state directories never share a cgroup. */
    snprintf(name, name_size, PREFIX "%lx-%d", (unsigned long)info.st_ino, *number);
    return true;
}

bool slot_record(int lock_fd, const struct cgroup *cgroup, struct fault *fault) {
    slot_clear_record(lock_fd);
    for (size_t i = 0; i < cgroup->dir_count; i++)
        if (!write_all(lock_fd, cgroup->dirs[i], strlen(cgroup->dirs[i])) || !write_all(lock_fd, "\n", 1))
            return fail_at(fault, "slot_record", (int)i);
    return true;
}

void slot_clear_record(int lock_fd) {
    if (ftruncate(lock_fd, 0) == 0)
        lseek(lock_fd, 0, SEEK_SET);
}

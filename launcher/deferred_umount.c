/* The lumber room: a directory bound onto itself, so that one umount takes everything that was put there. */
#include "deferred_umount.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define DEFERRED_DIR "/deferred_umount"
#define MOUNTS_MAX 64
#define HELD_BYTES_MAX (1024 * 1024) /* memory that past runs may still hold */

static unsigned mount_count, created;
static uint64_t held_bytes;
static int deferred_fd = -1; /* writable, as the room was when it was made: later views of it are not */

static bool bind_to_itself(void) { return mount(DEFERRED_DIR, DEFERRED_DIR, NULL, MS_BIND, NULL) == 0; }

bool deferred_umount_init(void) {
    if (mkdir(DEFERRED_DIR, 0700) != 0 || !bind_to_itself())
        return false;
    deferred_fd = open(DEFERRED_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return deferred_fd >= 0;
}

/* Directories are made when they are first needed: a box for one run needs none. */
static bool make_mount_point(unsigned index, char *path, size_t size) {
    int prefix = snprintf(path, size, DEFERRED_DIR "/%u", index) > 0 ? (int)sizeof DEFERRED_DIR : 0;
    if (index < created)
        return true;
    if (mkdirat(deferred_fd, path + prefix, 0700) != 0)
        return false;
    created = index + 1;
    return true;
}

bool deferred_umount_is_empty(void) { return mount_count == 0; }

bool deferred_umount_flush(void) {
    if (mount_count == 0)
        return true;
    mount_count = 0;
    held_bytes = 0;
    return umount2(DEFERRED_DIR, MNT_DETACH) == 0 && bind_to_itself();
}

/* A file can only be mounted on a file: such mounts, and anything that cannot be moved, are let go at once. */
bool deferred_umount_add(const char *point) {
    char path[32];
    struct statfs info;
    if (statfs(point, &info) == 0 && info.f_type == 0x01021994 /* tmpfs */)
        held_bytes += (uint64_t)(info.f_blocks - info.f_bfree) * (uint64_t)info.f_bsize;
    if (!make_mount_point(mount_count, path, sizeof path) || move_mount(AT_FDCWD, point, AT_FDCWD, path, 0) != 0)
        return umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
    mount_count++;
    return (mount_count < MOUNTS_MAX && held_bytes <= HELD_BYTES_MAX) || deferred_umount_flush();
}

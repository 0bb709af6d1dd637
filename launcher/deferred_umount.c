/* The directory is a bind mount on itself, so that one umount detaches everything below it. */
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
#define HELD_BYTES_MAX (1024 * 1024) /* memory that past runs may still use */

static unsigned mount_count, created;
static uint64_t held_bytes;
static int deferred_fd = -1; /* writable; bind mounts made later are read-only */

static bool bind_to_itself(void) { return mount(DEFERRED_DIR, DEFERRED_DIR, NULL, MS_BIND, NULL) == 0; }

bool deferred_umount_init(void) {
    if (mkdir(DEFERRED_DIR, 0700) != 0 || !bind_to_itself())
        return false;
    deferred_fd = open(DEFERRED_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return deferred_fd >= 0;
}

/* Directories are created when they are first needed; a box for one run needs none. */
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

/* A file mount cannot be moved onto a directory. It, and anything else that cannot be moved, is unmounted now. */
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

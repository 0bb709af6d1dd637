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

#define ROOM "/lumber"
#define PLACES 64
#define BYTES_MAX (1024 * 1024) /* memory that past runs may still hold */

static unsigned used, made;
static uint64_t held_bytes;
static int room_fd = -1; /* writable, as the room was when it was made: later views of it are not */

static bool open_room(void) { return mount(ROOM, ROOM, NULL, MS_BIND, NULL) == 0; }

bool lumber_make(void) {
    if (mkdir(ROOM, 0700) != 0 || !open_room())
        return false;
    room_fd = open(ROOM, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return room_fd >= 0;
}

/* Directories are made when they are first needed: a box for one run needs none. */
static bool make_place(unsigned place, char *path, size_t size) {
    int prefix = snprintf(path, size, ROOM "/%u", place) > 0 ? (int)sizeof ROOM : 0;
    if (place < made)
        return true;
    if (mkdirat(room_fd, path + prefix, 0700) != 0)
        return false;
    made = place + 1;
    return true;
}

bool lumber_is_empty(void) { return used == 0; }

bool lumber_clear(void) {
    if (used == 0)
        return true;
    used = 0;
    held_bytes = 0;
    return umount2(ROOM, MNT_DETACH) == 0 && open_room();
}

/* A file can only be mounted on a file: such mounts, and anything that cannot be moved, are let go at once. */
bool lumber_put_away(const char *point) {
    char path[32];
    struct statfs info;
    if (statfs(point, &info) == 0 && info.f_type == 0x01021994 /* tmpfs */)
        held_bytes += (uint64_t)(info.f_blocks - info.f_bfree) * (uint64_t)info.f_bsize;
    if (!make_place(used, path, sizeof path) || move_mount(AT_FDCWD, point, AT_FDCWD, path, 0) != 0)
        return umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
    used++;
    return (used < PLACES && held_bytes <= BYTES_MAX) || lumber_clear();
}

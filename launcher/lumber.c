/* The lumber room: a directory bound onto itself, so that one umount takes everything that was put there. */
#include "lumber.h"

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

static unsigned used;
static uint64_t held_bytes;

static void name_place(char *path, size_t size, unsigned place) { snprintf(path, size, ROOM "/%u", place); }

static bool open_room(void) { return mount(ROOM, ROOM, NULL, MS_BIND, NULL) == 0; }

bool lumber_make(void) {
    char path[32];
    if (mkdir(ROOM, 0700) != 0)
        return false;
    for (unsigned place = 0; place < PLACES; place++) {
        name_place(path, sizeof path, place);
        if (mkdir(path, 0700) != 0)
            return false;
    }
    return open_room();
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
    name_place(path, sizeof path, used);
    if (move_mount(AT_FDCWD, point, AT_FDCWD, path, 0) != 0)
        return umount2(point, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
    used++;
    return (used < PLACES && held_bytes <= BYTES_MAX) || lumber_clear();
}

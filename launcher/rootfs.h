/* The box's own root: a small read-only tmpfs with read-only views of the host's system directories. Built once.
 *
 *   /          the agent's root, which no program ever sees
 *   /box       the program's root: it is chrooted there
 *   /procfs    files that stand in for those of /proc (procfs.h)
 *   /lumber    where mounts of past runs wait to be let go, many at a time (deferred_umount.h) */
#ifndef ADJUDGE_ROOTFS_H
#define ADJUDGE_ROOTFS_H

#include "box.h"

/* In a fresh mount namespace of ours: builds the root, moves into it, lets go of the host's. */
bool rootfs_build(struct slot *slot, struct fault *fault);

/* A detached, restricted copy of what path names in the current mount namespace; -1 with errno. */
int rootfs_clone_tree(const char *path, uint64_t attributes);

/* A new read-only file with this text. */
bool rootfs_write_file(int dir_fd, const char *path, const char *text);

#endif

/* Root file system of a box: a small read-only tmpfs with read-only bind mounts of the host's system directories. Built
 * once per agent.
 *
 *   /                  root of the agent, invisible to programs
 *   /box               root of the program, which is chrooted there
 *   /procfs            constant replacements for files of /proc (procfs.h)
 *   /deferred_umount   mounts of past runs that wait to be unmounted together (deferred_umount.h) */
#ifndef ADJUDGE_ROOTFS_H
#define ADJUDGE_ROOTFS_H

#include "box.h"

/* Called in a new mount namespace: builds the root, enters it and unmounts the host's root. */
bool rootfs_build(struct slot *slot, struct fault *fault);

/* Returns a detached bind mount of the path in the current mount namespace, with these attributes; -1 with errno. */
int rootfs_clone_tree(const char *path, uint64_t attributes);

/* Creates a read-only file with this text. */
bool rootfs_write_file(int dir_fd, const char *path, const char *text);

#endif

/* The /proc of the box: processes of the box, and nothing about the host or other boxes.
 *
 * Entries that are not processes are hidden unless they are known to be harmless. A few that runtimes read are
 * replaced by constant files: they contain the number of processors and the size of memory, but not how much of them
 * is in use. */
#ifndef ADJUDGE_PROCFS_H
#define ADJUDGE_PROCFS_H

#include "box.h"

/* The working directory must be the new root; its parent directory is not visible to programs. In some containers the
 * kernel refuses to mount /proc: then programs run without it, and the hello message has has_proc false. */
bool procfs_mount_masked(int root_fd, struct slot *slot, struct fault *fault);

#endif

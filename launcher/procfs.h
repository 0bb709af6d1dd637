/* The box's /proc: its own processes, and nothing that speaks of the host or of what other boxes do.
 *
 * Every entry but those of processes is hidden unless it is known to be harmless. A few that run-times read have a
 * stand-in, which says the same for the whole life of the machine: how many processors there are and how much memory,
 * never how much of them is in use. */
#ifndef ADJUDGE_PROCFS_H
#define ADJUDGE_PROCFS_H

#include "box.h"

/* The working directory is the new root, with a directory above it that programs do not see. Inside a container of
 * somebody else's, /proc may be refused: programs then run without one, and the hello of the agent says so. */
bool procfs_mount_masked(int root_fd, struct slot *slot, struct fault *fault);

#endif

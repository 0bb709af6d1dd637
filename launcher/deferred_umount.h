/* Unmounts the mounts of past runs in batches. An unmount waits for all CPUs (an RCU grace period) and costs more than
 * the mount itself; moving a mount does not. Therefore mounts are moved to /deferred_umount, outside the root of every
 * program, and unmounted together: when there are many, when they hold much memory, or when the agent is idle. */
#ifndef ADJUDGE_DEFERRED_UMOUNT_H
#define ADJUDGE_DEFERRED_UMOUNT_H

#include <stdbool.h>

bool deferred_umount_init(void);             /* called once, while the agent's root is built */
bool deferred_umount_add(const char *point); /* a mount with its submounts; false: it is still mounted */
bool deferred_umount_is_empty(void);
bool deferred_umount_flush(void);            /* unmounts everything that was added */

#endif

/* Mounts of past runs. Letting go of a mount makes the kernel wait for all CPUs, which costs more than the mount itself;
 * moving it out of the program's sight does not. So they are moved to /lumber, outside of every program's root, and let
 * go together: when there are many, when they hold memory, and when there is nothing else to do. */
#ifndef ADJUDGE_DEFERRED_UMOUNT_H
#define ADJUDGE_DEFERRED_UMOUNT_H

#include <stdbool.h>

bool deferred_umount_init(void);                  /* once, while the agent's root is being made */
bool deferred_umount_add(const char *point); /* a mount with all that is on it; false: it is still there */
bool deferred_umount_is_empty(void);
bool deferred_umount_flush(void);                 /* nothing of past runs exists afterwards */

#endif

/* Slot numbers. A slot is held by a lock on a file in the state directory. The file lists the cgroups of the slot, so
 * that the next process which gets the lock can remove them if the previous owner was killed. */
#ifndef ADJUDGE_SLOTS_H
#define ADJUDGE_SLOTS_H

#include "cgroup.h"

#define SLOTS_MAX 1024
#define SLOT_UID_BASE 1900000000u

/* Acquires the lowest free slot. The lock is held as long as any copy of *lock_fd is open. Removes leftovers of all
 * free slots. */
bool slot_acquire(const char *state_dir, int *number, int *lock_fd, char *name, size_t name_size, struct fault *fault);
bool slot_record(int lock_fd, const struct cgroup *cgroup, struct fault *fault);
void slot_clear_record(int lock_fd);

#endif

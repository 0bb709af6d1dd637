/* Slot numbers, each held by a lock on a file in the state directory; the file names the slot's cgroups, so that
 * whoever takes the lock next can sweep what a power cut or a kill left behind. */
#ifndef ADJUDGE_SLOTS_H
#define ADJUDGE_SLOTS_H

#include "cgroup.h"

#define SLOTS_MAX 1024
#define SLOT_UID_BASE 1900000000u

/* Takes the lowest free number; the lock lives as long as any copy of *lock_fd. Sweeps all slots nobody holds. */
bool slot_acquire(const char *state_dir, int *number, int *lock_fd, char *name, size_t name_size, struct fault *fault);
bool slot_record(int lock_fd, const struct cgroup *cgroup, struct fault *fault);
void slot_clear_record(int lock_fd);

#endif

/* Starting a child that shares our memory until it executes: no page table is copied, it reads what it is to do from
 * plain structures, and its failures can be read the same way. */
#ifndef ADJUDGE_CLONE_CHILD_H
#define ADJUDGE_CLONE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Runs body(argument) in a new process, in cgroup_fd's cgroup where that is not negative. *pid is written before the
 * child runs; *alive is a sign (futex_word.h) that the kernel makes 0 when the child has executed a program or ended.
 *
 * Until then it shares our memory, our descriptors (until it asks for a table of its own), and the calling thread's
 * thread-local storage: that thread may do nothing but sleep meanwhile. One child at a time. */
bool clone_child(int cgroup_fd, pid_t *pid, int *alive, void (*body)(void *), void *argument);

/* Whether a child is really born in cgroup_fd's cgroup; else it must move there itself. */
bool clone_child_into_cgroup_supported(void);

#endif

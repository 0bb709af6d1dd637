/* Creates a child that shares memory with the agent until exec. No page tables are copied, the request is passed as a
 * pointer, and the agent reads the child's fault from the same structure. */
#ifndef ADJUDGE_CLONE_CHILD_H
#define ADJUDGE_CLONE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Runs body(argument) in a new process, in the cgroup of cgroup_fd if that is not negative. *pid is set before the
 * child runs. *alive is a futex word (futex_word.h) that the kernel sets to 0 when the child has executed a program or
 * ended.
 *
 * Until then, the child shares our memory, our descriptors (until it unshares them) and the thread-local storage of the
 * calling thread. Therefore the calling thread must only sleep, and there may be only one such child at a time. */
bool clone_child(int cgroup_fd, pid_t *pid, int *alive, void (*body)(void *), void *argument);

/* Whether the child starts in the cgroup of cgroup_fd. If not, it must join the cgroup itself. */
bool clone_child_into_cgroup_supported(void);

#endif

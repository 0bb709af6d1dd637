/* Starting a child that shares our memory until it executes: no page table is copied, and its failures can be read
 * from a plain structure when we wake. */
#ifndef ADJUDGE_SPAWN_H
#define ADJUDGE_SPAWN_H

#include <sys/types.h>

/* Runs body(argument) in a new process, in cgroup_fd's cgroup where that is not negative. We sleep until the child
 * has executed a program or ended. What argument points to must be memory from spawn_shared_memory(). */
pid_t spawn(int cgroup_fd, void (*body)(void *), void *argument);
void *spawn_shared_memory(size_t size);

#endif

/* The system call filter: a classic BPF program, built once per agent and installed for every program. */
#ifndef ADJUDGE_SECCOMP_H
#define ADJUDGE_SECCOMP_H

#include <stdbool.h>

void seccomp_build(bool memory_counted); /* called once, before the first run; true if a cgroup counts memory */
bool seccomp_apply(bool allow_internet); /* called after no_new_privs is set */

#endif

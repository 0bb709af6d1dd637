/* The system-call filter: a hand-written classic BPF program, built once per agent, put on every program. */
#ifndef ADJUDGE_SECCOMP_H
#define ADJUDGE_SECCOMP_H

#include <stdbool.h>

void seccomp_build(bool memory_counted); /* once, before the first run; counted: by a cgroup */
bool seccomp_apply(bool allow_internet); /* by the child, after no_new_privs */

#endif

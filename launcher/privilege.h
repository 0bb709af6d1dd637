/* What a process gives up before it executes a program. */
#ifndef ADJUDGE_PRIVILEGE_H
#define ADJUDGE_PRIVILEGE_H

#include "cgroup.h"

/* Joins the cgroup, sets no_new_privs and installs the seccomp filter. Called once by the spawner, whose children
 * inherit it. On cgroup v2, called by each child, because the filter blocks clone3, which the spawner needs to clone
 * into a cgroup. */
bool privilege_confine(const struct cgroup *cgroup, bool allow_internet, struct fault *fault);
/* Sets user and group and drops capabilities. Called by each child, not by the spawner: a thread of the agent must not
 * have the uid of programs, because they could send signals to it. */
bool privilege_drop(const struct slot *slot, struct fault *fault);

#endif

/* What every program gives up. */
#ifndef ADJUDGE_PRIVILEGE_H
#define ADJUDGE_PRIVILEGE_H

#include "cgroup.h"

/* The place in the hierarchy of cgroups, the hope of new privileges, and the calls that the filter refuses. By the
 * starter, once, for all that it will start; on cgroup v2 by each child for itself, because to be born in a cgroup takes
 * a call that the filter refuses. */
bool privilege_confine(const struct cgroup *cgroup, bool allow_internet, struct fault *fault);
/* Identity and capabilities. By each child: a thread of the agent's must not have the uid of programs, or they could send
 * it signals. */
bool privilege_drop(const struct slot *slot, struct fault *fault);

#endif

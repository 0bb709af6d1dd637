/* Creates the namespaces of a box, and the user mapping of an unprivileged caller. */
#ifndef ADJUDGE_NAMESPACES_H
#define ADJUDGE_NAMESPACES_H

#include "box.h"

/* For an unprivileged caller, enters a user namespace first. Then keeps a descriptor of the host's mount namespace. */
bool namespaces_prepare(struct slot *slot, struct fault *fault);
/* Like fork, into new mount, pid, network, ipc and uts namespaces. The child is pid 1 of the box. */
pid_t namespaces_fork(struct fault *fault);
/* Called once in the box: drops groups, capability bounding set and the rights that exec could give; sets host name and
 * cgroup namespace. */
bool namespaces_drop_privileges(bool rootless, bool private_cgroup_view, struct fault *fault);

#endif

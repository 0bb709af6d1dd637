/* Namespaces: which are made, when, and the identity of an ordinary user in one. */
#ifndef ADJUDGE_NAMESPACES_H
#define ADJUDGE_NAMESPACES_H

#include "box.h"

/* Ordinary users first become masters of a user namespace. Then the host's view is remembered. */
bool namespaces_prepare(struct slot *slot, struct fault *fault);
/* Like fork, into fresh mount, pid, network, ipc and uts namespaces: the child is the first process of the box. */
pid_t namespaces_fork(struct fault *fault);
/* In the box, once: groups, name, cgroup view, nothing to be gained by executing a file. */
bool namespaces_drop_privileges(bool rootless, bool private_cgroup_view, struct fault *fault);

#endif

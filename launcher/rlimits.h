/* Per-process resource limits of the kernel. They are a second barrier behind the cgroup limits. */
#ifndef ADJUDGE_RLIMITS_H
#define ADJUDGE_RLIMITS_H

#include "cgroup.h"

void rlimits_read_hard(void); /* called once by the agent; hard limits cannot be exceeded */
/* Called by the child. Return NULL, or the name of the failed step with errno set. */
const char *rlimits_apply_fixed(void); /* limits that do not depend on the request */
const char *rlimits_apply(const struct limits *limits, enum cgroup_kind kind, bool sampled);

#endif

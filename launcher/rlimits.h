/* Resource limits of the kernel's per-process kind: the walls behind the cgroup's. */
#ifndef ADJUDGE_RLIMITS_H
#define ADJUDGE_RLIMITS_H

#include "cgroup.h"

void rlimits_read_hard(void); /* once, by the agent: hard limits that may not be exceeded */
/* By the child: NULL, or the name of the step that failed, with errno. */
const char *rlimits_apply_fixed(void); /* what no request changes */
const char *rlimits_apply(const struct limits *limits, enum cgroup_kind kind, bool sampled);

#endif

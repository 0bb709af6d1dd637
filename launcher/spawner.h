/* The starter: a thread of the agent's that has given up, once, what every program must: the view of anything but the
 * program's root, the hope of new privileges, and the calls that the filter refuses. Children inherit all of that, so
 * that no run pays for it: installing a filter alone costs a tenth of a run. */
#ifndef ADJUDGE_SPAWNER_H
#define ADJUDGE_SPAWNER_H

#include "child.h"

#define SPAWNER_THREADS 1 /* tasks that the agent has besides its first */

bool spawner_start(const struct cgroup *cgroup, bool allow_internet, struct fault *fault);
void spawner_stop(void); /* nothing may be under way; harmless when there is no starter */
bool spawner_is_running(void);
/* A child is born and waits for child_start_program(). Failures are found in the child's own fault. */
void spawner_submit(struct child *child);

#endif

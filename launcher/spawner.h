/* The spawner: a thread of the agent that clones children. It is confined once (chroot, no_new_privs, seccomp filter),
 * and its children inherit that. No run pays for it: installing a filter takes about a tenth of the time of a run. */
#ifndef ADJUDGE_SPAWNER_H
#define ADJUDGE_SPAWNER_H

#include "child.h"

#define SPAWNER_THREADS 1 /* tasks of the agent besides its main thread */

bool spawner_start(const struct cgroup *cgroup, bool allow_internet, struct fault *fault);
void spawner_stop(void); /* no child may be starting; harmless if there is no spawner */
bool spawner_is_running(void);
/* Clones a child, which then waits for child_start_program(). A failure is recorded in the fault of the child. */
void spawner_submit(struct child *child);

#endif

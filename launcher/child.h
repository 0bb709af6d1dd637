/* The program's process, from its birth to exec. It is born before it is needed: up to child_start_program() it only gives things
 * up, and nothing of what it does depends on the request. */
#ifndef ADJUDGE_CHILD_H
#define ADJUDGE_CHILD_H

#include "box.h"
#include "cgroup.h"
#include "request.h"

enum child_state { CHILD_DONE, CHILD_PREPARING, CHILD_READY, CHILD_STARTING }; /* gone: it has executed, or ended */

struct child {
    const struct slot *slot;
    const struct cgroup *cgroup;
    bool confined;                 /* born so: its parent is */
    bool allow_internet;
    int state;                     /* a sign (futex_word.h): enum child_state */
    const struct request *request; /* there once the state is CHILD_STARTING */
    pid_t pid;
    struct fault fault;  /* the child's own, written by it */
    uint64_t started_ns; /* just before exec; 0 until then */
};

void child_init(struct child *child, const struct slot *slot, const struct cgroup *cgroup);
void child_main(void *child);
/* By the agent: waits until the child can take a request; false: it never will. */
bool child_wait_ready(const struct child *child);
/* By the agent, whose descriptors 0, 1 and 2 are what the program shall have. */
void child_start_program(struct child *child, const struct request *request);

#endif

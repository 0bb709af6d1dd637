/* The process that becomes the program, from clone to exec. It is created before the request is known: until
 * child_start_program(), it only drops privileges and does nothing that depends on the request. */
#ifndef ADJUDGE_CHILD_H
#define ADJUDGE_CHILD_H

#include "box.h"
#include "cgroup.h"
#include "request.h"

enum child_state { CHILD_DONE, CHILD_PREPARING, CHILD_READY, CHILD_STARTING }; /* done: exec or exit */

struct child {
    const struct slot *slot;
    const struct cgroup *cgroup;
    bool confined;                 /* the parent is confined, so the child inherits it */
    bool allow_internet;
    int state;                     /* futex word (futex_word.h): enum child_state */
    const struct request *request; /* set before the state becomes CHILD_STARTING */
    pid_t pid;
    struct fault fault;            /* written by the child */
    uint64_t started_ns;           /* just before exec; 0 until then */
};

void child_init(struct child *child, const struct slot *slot, const struct cgroup *cgroup);
void child_main(void *child);
/* Called by the agent: waits until the child is ready for a request. False if it never will be. */
bool child_wait_ready(const struct child *child);
/* Called by the agent. Descriptors 0, 1 and 2 of the agent become those of the program. */
void child_start_program(struct child *child, const struct request *request);

#endif

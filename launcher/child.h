/* The program's process, from its birth to exec. */
#ifndef ADJUDGE_CHILD_H
#define ADJUDGE_CHILD_H

#include "box.h"
#include "cgroup.h"
#include "request.h"

struct child {
    const struct slot *slot;
    const struct request *request;
    const struct cgroup *cgroup;
    int stdin_fd, stdout_fd, stderr_fd;
    struct fault fault;  /* the child's own, written by it */
    uint64_t started_ns; /* just before exec */
};

void child_main(void *child);

#endif

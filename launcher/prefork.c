/* Prepares the next run. */
#include "prefork.h"

#include "output_pipes.h"
#include "run.h"
#include "spawner.h"

#include <errno.h>
#include <unistd.h>

void prefork_init(struct prefork *prefork) {
    prefork->out[0] = prefork->out[1] = prefork->err[0] = prefork->err[1] = -1;
    workdir_init(&prefork->workdir);
}

static bool make_pipes(struct box *box, struct fault *fault) {
    if (!output_pipe_create(box->prefork.out, &box->slot))
        return fail_at(fault, "stdout", -1);
    return output_pipe_create(box->prefork.err, &box->slot) || fail_at(fault, "stderr", -1);
}

static bool submit_child(struct box *box, struct fault *fault) {
    if (!cgroup_prepare(&box->cgroup, fault))
        return false;
    child_init(&box->prefork.child, &box->slot, &box->cgroup);
    spawner_submit(&box->prefork.child);
    return true;
}

bool prefork_prepare(struct box *box, bool allow_internet, struct fault *fault) {
    struct prefork *prefork = &box->prefork;
    if (prefork->is_prepared)
        return true;
    if (!spawner_is_running() && !spawner_start(&box->cgroup, allow_internet, fault))
        return false;
    prefork->is_prepared = make_pipes(box, fault) && submit_child(box, fault);
    if (!prefork->is_prepared)
        prefork_release(prefork); /* the next attempt creates new pipes */
    return prefork->is_prepared;
}

static void drop(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void prefork_release(struct prefork *prefork) {
    drop(&prefork->out[0]);
    drop(&prefork->out[1]);
    drop(&prefork->err[0]);
    drop(&prefork->err[1]);
    prefork->is_prepared = false;
}

/* If the waiting child was killed from outside, another one is created. */
bool prefork_wait(struct box *box, struct fault *fault) {
    struct child *child = &box->prefork.child;
    struct usage ignored;
    if (child_wait_ready(child))
        return true;
    if (child->fault.step == NULL) {
        cgroup_finish_run(&box->cgroup, &ignored);
        if (!submit_child(box, fault) || child_wait_ready(child))
            return fault->step == NULL;
    }
    *fault = child->fault;
    errno = ECHILD;
    return fault->step != NULL ? false : fail_at(fault, "spawn", -1);
}

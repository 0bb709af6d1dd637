/* Preparing the next run. */
#include "prefork.h"

#include "output_pipes.h"
#include "run.h"
#include "spawner.h"

#include <errno.h>
#include <unistd.h>

void ready_init(struct ready *ready) {
    ready->out[0] = ready->out[1] = ready->err[0] = ready->err[1] = -1;
    workdir_init(&ready->workdir);
}

static bool make_pipes(struct box *box, struct fault *fault) {
    if (!pump_pipe(box->ready.out, &box->slot))
        return fail_at(fault, "stdout", -1);
    return pump_pipe(box->ready.err, &box->slot) || fail_at(fault, "stderr", -1);
}

static bool order_child(struct box *box, struct fault *fault) {
    if (!cgroup_prepare(&box->cgroup, fault))
        return false;
    child_init(&box->ready.child, &box->slot, &box->cgroup);
    starter_order(&box->ready.child);
    return true;
}

bool ready_make(struct box *box, bool allow_internet, struct fault *fault) {
    struct ready *ready = &box->ready;
    if (ready->made)
        return true;
    if (!starter_runs() && !starter_begin(&box->cgroup, allow_internet, fault))
        return false;
    ready->made = make_pipes(box, fault) && order_child(box, fault);
    if (!ready->made)
        ready_used(ready); /* whoever tries again makes new pipes */
    return ready->made;
}

static void drop(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void ready_used(struct ready *ready) {
    drop(&ready->out[0]);
    drop(&ready->out[1]);
    drop(&ready->err[0]);
    drop(&ready->err[1]);
    ready->made = false;
}

/* Somebody on the host may have killed the child while it waited: another one does as well. */
bool ready_await(struct box *box, struct fault *fault) {
    struct child *child = &box->ready.child;
    struct usage ignored;
    if (child_await(child))
        return true;
    if (child->fault.step == NULL) {
        cgroup_finish(&box->cgroup, &ignored);
        if (!order_child(box, fault) || child_await(child))
            return fault->step == NULL;
    }
    *fault = child->fault;
    errno = ECHILD;
    return fault->step != NULL ? false : fail_at(fault, "spawn", -1);
}

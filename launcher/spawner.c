/* One thread, one order at a time. Until its child has executed a program it only sleeps, because the two have their
 * thread-local storage in common. */
#include "spawner.h"

#include "clone_child.h"
#include "futex_word.h"
#include "privilege.h"
#include "wake_affinity.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define STACK_BYTES (64 * 1024)

enum starter_state { STARTER_SETTLES, STARTER_WAITS, STARTER_WORKS, STARTER_ENDS };

static struct {
    pthread_t thread;
    pid_t task;
    bool runs;
    const struct cgroup *cgroup;
    bool allow_internet, confined;
    int state;           /* a sign: enum starter_state */
    struct child *child; /* of the order */
    struct fault fault;
} starter;

static bool settle(struct fault *fault) {
    if (unshare(CLONE_FS) != 0 || chroot(BOX_ROOT) != 0 || chdir("/") != 0)
        return fail_at(fault, "root", -1);
    return !starter.confined || privilege_confine(starter.cgroup, starter.allow_internet, fault);
}

/* The order is done before the child is born: the next one comes when that child is gone. */
static void work(struct child *child) {
    starter.state = STARTER_WAITS;
    if (spawn(cgroup_clone_fd(child->cgroup), &child->pid, &child->state, child_main, child))
        return;
    fail_at(&child->fault, "spawn", -1);
    sign_set(&child->state, CHILD_GONE);
}

static void *serve(void *nothing) {
    starter.task = gettid();
    bool fine = settle(&starter.fault);
    sign_set(&starter.state, fine ? STARTER_WAITS : STARTER_ENDS);
    while (fine && sign_await_change(&starter.state, STARTER_WAITS) == STARTER_WORKS)
        work(starter.child);
    return nothing;
}

/* It blocks no signal that we do not: an ordinary user's programs may send it some, and the kernel drops what the first
 * process of a box did not ask for only where it is not blocked. */
static bool create(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&starter.thread, &attributes, serve, NULL);
    pthread_attr_destroy(&attributes);
    errno = error;
    return error == 0;
}

bool starter_begin(const struct cgroup *cgroup, bool allow_internet, struct fault *fault) {
    starter.cgroup = cgroup;
    starter.confined = cgroup->kind != CGROUP_V2;
    starter.allow_internet = allow_internet;
    starter.fault = (struct fault){0};
    starter.state = STARTER_SETTLES;
    if (!create())
        return fail_at(fault, "starter", -1);
    sign_await_change(&starter.state, STARTER_SETTLES);
    starter.runs = starter.fault.step == NULL;
    if (!starter.runs) {
        pthread_join(starter.thread, NULL);
        *fault = starter.fault;
    }
    return starter.runs;
}

void starter_end(void) {
    if (!starter.runs)
        return;
    sign_set(&starter.state, STARTER_ENDS);
    pthread_join(starter.thread, NULL);
    starter.runs = false;
}

bool starter_runs(void) { return starter.runs; }

void starter_order(struct child *child) {
    child->allow_internet = starter.allow_internet;
    child->confined = starter.confined;
    starter.child = child;
    near_bring(starter.task); /* and its child is born there */
    sign_set(&starter.state, STARTER_WORKS);
}

/* One thread that clones one child at a time. It sleeps until its child has executed a program, because both share
 * thread-local storage. */
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

enum spawner_state { SPAWNER_STARTING, SPAWNER_READY, SPAWNER_CLONING, SPAWNER_STOPPED };

static struct {
    pthread_t thread;
    pid_t task;
    bool is_running;
    const struct cgroup *cgroup;
    bool allow_internet, confined;
    int state;           /* futex word: enum spawner_state */
    struct child *child; /* to be cloned */
    struct fault fault;
} spawner;

static bool confine(struct fault *fault) {
    if (unshare(CLONE_FS) != 0 || chroot(BOX_ROOT) != 0 || chdir("/") != 0)
        return fail_at(fault, "root", -1);
    return !spawner.confined || privilege_confine(spawner.cgroup, spawner.allow_internet, fault);
}

/* The state becomes READY before the clone, because afterwards this thread may only sleep. The next request comes when
 * this child is done. */
static void clone_requested(struct child *child) {
    spawner.state = SPAWNER_READY;
    if (clone_child(cgroup_clone_fd(child->cgroup), &child->pid, &child->state, child_main, child))
        return;
    fail_at(&child->fault, "spawn", -1);
    futex_word_store(&child->state, CHILD_DONE);
}

static void *serve(void *unused) {
    spawner.task = gettid();
    bool fine = confine(&spawner.fault);
    futex_word_store(&spawner.state, fine ? SPAWNER_READY : SPAWNER_STOPPED);
    while (fine && futex_word_wait(&spawner.state, SPAWNER_READY) == SPAWNER_CLONING)
        clone_requested(spawner.child);
    return unused;
}

/* The thread does not block signals that the agent does not block. Programs of an unprivileged user may signal it, and
 * the kernel drops unhandled signals to pid 1 only if they are not blocked. */
static bool create(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&spawner.thread, &attributes, serve, NULL);
    pthread_attr_destroy(&attributes);
    errno = error;
    return error == 0;
}

bool spawner_start(const struct cgroup *cgroup, bool allow_internet, struct fault *fault) {
    spawner.cgroup = cgroup;
    spawner.confined = cgroup->kind != CGROUP_V2;
    spawner.allow_internet = allow_internet;
    spawner.fault = (struct fault){0};
    spawner.state = SPAWNER_STARTING;
    if (!create())
        return fail_at(fault, "spawner", -1);
    futex_word_wait(&spawner.state, SPAWNER_STARTING);
    spawner.is_running = spawner.fault.step == NULL;
    if (!spawner.is_running) {
        pthread_join(spawner.thread, NULL);
        *fault = spawner.fault;
    }
    return spawner.is_running;
}

void spawner_stop(void) {
    if (!spawner.is_running)
        return;
    futex_word_store(&spawner.state, SPAWNER_STOPPED);
    pthread_join(spawner.thread, NULL);
    spawner.is_running = false;
}

bool spawner_is_running(void) { return spawner.is_running; }

void spawner_submit(struct child *child) {
    child->allow_internet = spawner.allow_internet;
    child->confined = spawner.confined;
    spawner.child = child;
    pin_to_current_cpu(spawner.task); /* the child is cloned on this CPU as well */
    futex_word_store(&spawner.state, SPAWNER_CLONING);
}

/* The path of the child to exec: a list of setup steps. Until exec, the child shares memory with the agent, so it must
 * write only to its own struct child. It ends in one of two ways: exec succeeds, or exit_with_fault(). From the spawner
 * it inherits the root directory and, except on cgroup v2, the seccomp filter. */
#include "child.h"

#include "futex_word.h"
#include "privilege.h"
#include "rlimits.h"
#include "wake_affinity.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1U << 1)
#endif
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static void exit_with_fault(struct child *child, const char *step) {
    fail_at(&child->fault, step, -1);
    _exit(127);
}

static void setup_session(struct child *child) {
    prctl(PR_SET_NAME, "adjudge-next", 0, 0, 0); /* visible in the host's process list until exec */
    umask(022);
    if (setsid() < 0)
        exit_with_fault(child, "session");
}

static void setup_privilege(struct child *child) {
    if (!child->confined && !privilege_confine(child->cgroup, child->allow_internet, &child->fault))
        exit_with_fault(child, "privilege");
    if (!privilege_drop(child->slot, &child->fault))
        exit_with_fault(child, "privilege");
}

static void setup_request(struct child *child) {
    futex_word_store(&child->state, CHILD_READY);
    futex_word_wait(&child->state, CHILD_READY);
    allow_all_cpus();
}

/* From here on, the descriptor table is the program's own. Before, it was shared with the agent. */
static void setup_descriptors(struct child *child) {
    if (syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_UNSHARE) != 0)
        exit_with_fault(child, "close_descriptors");
}

static void setup_directory(struct child *child) {
    if (chdir(BOX_WORK) != 0)
        exit_with_fault(child, "directory");
}

static void setup_fixed_limits(struct child *child) {
    const char *failed = rlimits_apply_fixed();
    if (failed != NULL)
        exit_with_fault(child, failed);
}

static void setup_limits(struct child *child) {
    const char *failed = rlimits_apply(&child->request->limits, child->cgroup->kind, child->slot->has_proc);
    if (failed != NULL)
        exit_with_fault(child, failed);
}

static void setup_signals(struct child *child) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    if (sigaction(SIGPIPE, &standard, NULL) != 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        exit_with_fault(child, "signals");
}

static const char *search_path(const struct request *request) {
    for (size_t i = 0; i < request->variable_count; i++)
        if (strncmp(request->variables[i], "PATH=", 5) == 0)
            return request->variables[i] + 5;
    return DEFAULT_PATH;
}

static void execute(const struct request *request, const char *file) {
    execve(file, (char *const *)(uintptr_t)request->arguments, (char *const *)(uintptr_t)request->variables);
}

static void exec_program(struct child *child) {
    const struct request *request = child->request;
    const char *name = request->arguments[0];
    char file[4096];
    child->started_ns = now_ns();
    if (strchr(name, '/') != NULL) {
        execute(request, name);
        exit_with_fault(child, "exec");
    }
    for (const char *dir = search_path(request); *dir != '\0'; dir += strspn(dir, ":")) {
        int length = (int)strcspn(dir, ":");
        if ((size_t)snprintf(file, sizeof file, "%.*s/%s", length, dir, name) < sizeof file) {
            execute(request, file);
            if (errno != ENOENT && errno != ENOTDIR)
                exit_with_fault(child, "exec");
        }
        dir += length;
    }
    errno = ENOENT;
    exit_with_fault(child, "exec");
}

void child_init(struct child *child, const struct slot *slot, const struct cgroup *cgroup) {
    *child = (struct child){.slot = slot, .cgroup = cgroup, .state = CHILD_PREPARING};
}

bool child_wait_ready(const struct child *child) { return futex_word_wait(&child->state, CHILD_PREPARING) == CHILD_READY; }

void child_main(void *argument) {
    struct child *child = argument;
    setup_session(child);
    setup_signals(child);
    setup_fixed_limits(child);
    setup_privilege(child);
    setup_request(child);
    setup_descriptors(child);
    setup_directory(child);
    setup_limits(child);
    exec_program(child);
}

void child_start_program(struct child *child, const struct request *request) {
    child->request = request;
    futex_word_store(&child->state, CHILD_STARTING);
}

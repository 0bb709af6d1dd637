/* The child's path to exec: a bare list of steps. It shares the agent's memory until exec, so it must not touch
 * anything but its own struct child. Two ways out: the program runs, or our_fault() ends the child. */
#include "child.h"

#include "limits.h"
#include "seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static void our_fault(struct child *child, const char *step) {
    fail_at(&child->fault, step, -1);
    _exit(127);
}

static void setup_session(struct child *child) {
    if (setsid() < 0)
        our_fault(child, "session");
}

/* v2: born in its cgroup, which becomes the root of what it sees of the hierarchy; v1's agent did that once. */
static void setup_cgroup(struct child *child) {
    if (!cgroup_join(child->cgroup))
        our_fault(child, "cgroup_join");
    if (child->cgroup->kind == CGROUP_V2 && unshare(CLONE_NEWCGROUP) != 0)
        our_fault(child, "cgroup_view");
}

static void setup_stdio(struct child *child) {
    if (dup2(child->stdin_fd, 0) < 0 || dup2(child->stdout_fd, 1) < 0 || dup2(child->stderr_fd, 2) < 0)
        our_fault(child, "stdio");
    if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0)
        our_fault(child, "close_descriptors");
}

/* Without CAP_SYS_CHROOT, and with no descriptor from outside, there is no way back. */
static void setup_root(struct child *child) {
    if (chroot(BOX_ROOT) != 0)
        our_fault(child, "root");
}

static void setup_directory(struct child *child) {
    if (chdir(BOX_WORK) != 0)
        our_fault(child, "directory");
    umask(022);
}

static void setup_limits(struct child *child) {
    const char *failed = limits_apply(&child->request->limits, child->cgroup->kind, child->slot->has_proc);
    if (failed != NULL)
        our_fault(child, failed);
}

/* Raw calls: the library's would try to change the identity of "all threads", which are the agent's. It has dropped
 * the supplementary groups already. */
static void setup_identity(struct child *child) {
    const struct slot *slot = child->slot;
    if (slot->rootless)
        return;
    if (syscall(SYS_setresgid, slot->gid, slot->gid, slot->gid) != 0 ||
        syscall(SYS_setresuid, slot->uid, slot->uid, slot->uid) != 0)
        our_fault(child, "identity");
}

/* Bounding set: the agent emptied it. Ambient set: cleared with the inheritable one. */
static void setup_capabilities(struct child *child) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 || syscall(SYS_capset, &header, none) != 0)
        our_fault(child, "capabilities");
}

static void setup_no_new_privileges(struct child *child) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        our_fault(child, "no_new_privileges");
}

static void setup_signals(struct child *child) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    if (sigaction(SIGPIPE, &standard, NULL) != 0 || sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        our_fault(child, "signals");
}

static void setup_filter(struct child *child) {
    if (!seccomp_apply(child->request->egress_count > 0))
        our_fault(child, "seccomp");
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

static void start_program(struct child *child) {
    const struct request *request = child->request;
    const char *name = request->arguments[0];
    char file[4096];
    child->started_ns = now_ns();
    if (strchr(name, '/') != NULL) {
        execute(request, name);
        our_fault(child, "exec");
    }
    for (const char *dir = search_path(request); *dir != '\0'; dir += strspn(dir, ":")) {
        int length = (int)strcspn(dir, ":");
        if ((size_t)snprintf(file, sizeof file, "%.*s/%s", length, dir, name) < sizeof file) {
            execute(request, file);
            if (errno != ENOENT && errno != ENOTDIR)
                our_fault(child, "exec");
        }
        dir += length;
    }
    errno = ENOENT;
    our_fault(child, "exec");
}

void child_main(void *argument) {
    struct child *child = argument;
    setup_session(child);
    setup_cgroup(child);
    setup_stdio(child);
    setup_root(child);
    setup_directory(child);
    setup_limits(child);
    setup_identity(child);
    setup_capabilities(child);
    setup_no_new_privileges(child);
    setup_signals(child);
    setup_filter(child);
    start_program(child);
}

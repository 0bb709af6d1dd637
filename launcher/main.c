/* adjudge-box: runs untrusted programs, at little more than the cost of fork and exec.
 *
 * THEORY OF OPERATION
 *
 *   client ──control──▶ agent ─▶ spawner ──clone──▶ child ──exec──▶ program
 *     │                   ▲
 *     │                   └──fork──┐
 *     └──posix_spawn──▶ keeper ────┘
 *
 * client   The process that starts the launcher and sends requests, with adjudge.sandbox; usually a worker.
 * keeper   The launcher process itself. It acquires a slot number (a locked file in the state directory), removes
 *          leftovers of killed launchers, creates the cgroup of the slot and, for an unprivileged user, a user
 *          namespace. Then it forks the agent into new namespaces and waits. When the agent ends, it removes the
 *          cgroup and exits. Privilege: the caller's. It never reads a request.
 * agent    Pid 1 in the pid namespace of the box, with its own mount, network, ipc, uts (and cgroup) namespaces.
 *          Builds the root file system once, clears the capability bounding set, makes itself non-dumpable, then
 *          serves requests. Privilege: root, or root of the user namespace, because every run needs new mounts
 *          (CAP_SYS_ADMIN). When it dies, the kernel kills all processes in the box. It dies with the keeper
 *          (PR_SET_PDEATHSIG) and exits when the client closes the control socket.
 * spawner  A thread of the agent with the confinement of a program (chroot, no_new_privs, seccomp filter) but the uid
 *          of the agent. It clones children, which inherit the confinement.
 * child    Created before the request arrives. It shares memory and descriptors with the agent, drops the remaining
 *          privileges and sleeps. A request wakes it; then it unshares its three descriptors, sets its limits and
 *          calls exec. There is one child at a time, and never while a program runs.
 * program  What the child executes: uid of the slot (or of the caller, in the user namespace), no capabilities,
 *          no_new_privs, seccomp filter, rlimits, its own session. It is not pid 1, so its signals work as usual.
 *          Processes that it leaves behind become children of the agent and are killed when the program ends.
 *
 * Channels:
 *   control    SOCK_SEQPACKET, inherited. In: requests with descriptors (request.h), or a cancel message. Out: one
 *              hello message (report_hello), then one line of JSON per request (report.c). Closing it ends the agent.
 *   capture    A memfd of the client, mapped by the agent: the first bytes of stdout and stderr.
 *   stdout,    One pipe each from program to agent, which counts the bytes, enforces the limit (output_pipes.c) and
 *   stderr     copies them to the capture or to a descriptor of the request. The program has no descriptor of a host
 *              file.
 *   stdin      /dev/null, a descriptor of the request, or a file opened through a read-only bind mount.
 *   listener   Seccomp user notification: a program that calls sysinfo waits for the reply of the agent (sysinfo.c).
 *
 * New for every run: /work and /tmp (tmpfs), mounts of the request, pipes, the process, the ipc namespace if the
 * previous program used it, and the cgroup (v2) or its counters (v1). Most of this is prepared after the previous
 * report was sent (prefork.c), when no client waits. Reused: the namespaces, because creating a network namespace
 * takes as long as a whole run, and an unprivileged program cannot change them.
 *
 * Each task wakes the next one on its own CPU before it sleeps (wake_affinity.c).
 *
 * There are two kinds of results. What the program does leads to a verdict about the program (run.c, set_verdict()). A
 * failure of the launcher is recorded by fail_at() with step, errno and index, and leads to verdict SE. */
#include "agent.h"
#include "monitor.h"
#include "namespaces.h"
#include "rlimits.h"
#include "rootfs.h"
#include "seccomp.h"
#include "slots.h"
#include "sysinfo.h"
#include "wake_affinity.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    bool once;
    int control_fd, capture_fd, cpu;
    size_t stdout_bytes, stderr_bytes;
    const char *state_dir;
};

static volatile sig_atomic_t agent_pid;

static const char usage[] = "usage: adjudge-box agent|command --control FD --capture FD --stdout-bytes N --stderr-bytes N"
                            " --state-dir DIR [--cpu N]\n";

static bool read_options(int count, char **values, struct options *options) {
    static const struct option names[] = {{"control", required_argument, NULL, 'c'},      {"capture", required_argument, NULL, 'b'},
                                          {"stdout-bytes", required_argument, NULL, 'o'}, {"stderr-bytes", required_argument, NULL, 'e'},
                                          {"state-dir", required_argument, NULL, 's'},    {"cpu", required_argument, NULL, 'p'},
                                          {NULL, 0, NULL, 0}};
    *options = (struct options){.control_fd = -1, .capture_fd = -1, .cpu = -1};
    if (count < 2 || (strcmp(values[1], "agent") != 0 && strcmp(values[1], "command") != 0))
        return false;
    options->once = strcmp(values[1], "command") == 0;
    for (int name; (name = getopt_long(count - 1, values + 1, "", names, NULL)) != -1;) {
        switch (name) {
        case 'c': options->control_fd = atoi(optarg); break;
        case 'b': options->capture_fd = atoi(optarg); break;
        case 'o': options->stdout_bytes = strtoul(optarg, NULL, 10); break;
        case 'e': options->stderr_bytes = strtoul(optarg, NULL, 10); break;
        case 's': options->state_dir = optarg; break;
        case 'p': options->cpu = atoi(optarg); break;
        default: return false;
        }
    }
    return options->control_fd > 2 && options->capture_fd > 2 && options->state_dir != NULL;
}

/* Resets what was inherited: signal handling, environment, and all descriptors except the two channels. */
static bool reset_process_state(const struct options *options, struct fault *fault) {
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &standard, NULL); /* fails for signals that cannot be changed */
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null_fd = open("/dev/null", O_RDWR);
    if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(null_fd, 2) < 0)
        return fail_at(fault, "stdio", -1);
    int low = options->control_fd < options->capture_fd ? options->control_fd : options->capture_fd;
    int high = options->control_fd < options->capture_fd ? options->capture_fd : options->control_fd;
    if (low > 3)
        syscall(SYS_close_range, 3u, (unsigned)low - 1, 0u);
    if (high > low + 1)
        syscall(SYS_close_range, (unsigned)low + 1, (unsigned)high - 1, 0u);
    syscall(SYS_close_range, (unsigned)high + 1, ~0u, 0u);
    fcntl(options->control_fd, F_SETFD, FD_CLOEXEC);
    fcntl(options->capture_fd, F_SETFD, FD_CLOEXEC);
    clearenv();
    return true;
}

static bool pin(int cpu, struct fault *fault) {
    cpu_set_t set;
    if (cpu < 0)
        return true;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0 || fail_at(fault, "pin_cpu", cpu);
}

static bool map_capture(struct box *box, const struct options *options, struct fault *fault) {
    box->stdout_capacity = options->stdout_bytes;
    box->stderr_capacity = options->stderr_bytes;
    box->capture = mmap(NULL, options->stdout_bytes + options->stderr_bytes + 1, PROT_READ | PROT_WRITE, MAP_SHARED, options->capture_fd, 0);
    if (box->capture == MAP_FAILED)
        return fail_at(fault, "capture", -1);
    close(options->capture_fd);
    return true;
}

static void send_hello(const struct box *box, const struct fault *fault) {
    char line[REPORT_BYTES_MAX];
    size_t size = report_hello(&box->slot, box->cgroup.kind, fault, line, sizeof line);
    (void)!send(box->control_fd, line, size, MSG_NOSIGNAL);
}

static bool enter_box(struct box *box, const struct options *options, struct fault *fault) {
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    prctl(PR_SET_NAME, "adjudge-agent", 0, 0, 0);
    if (!cgroup_enter(&box->cgroup, fault) || !rootfs_build(&box->slot, fault) || !map_capture(box, options, fault) ||
        !namespaces_drop_privileges(box->slot.rootless, box->cgroup.kind != CGROUP_V2, fault))
        return false;
    box->null_fd = open(BOX_ROOT "/dev/null", O_RDONLY | O_CLOEXEC);
    if (box->null_fd < 0)
        return fail_at(fault, "dev_null", -1);
    prefork_init(&box->prefork);
    wake_affinity_init();
    monitor_init();
    rlimits_read_hard();
    sysinfo_init();
    seccomp_build(box->cgroup.kind != CGROUP_NONE);
    return true;
}

static int run_agent(struct box *box, const struct options *options) {
    struct fault fault = {0};
    bool ready = enter_box(box, options, &fault);
    send_hello(box, &fault);
    if (!ready)
        return 1;
    return options->once ? command_serve(box) : agent_serve(box);
}

static void on_stop(int number) {
    (void)number;
    if (agent_pid > 0)
        kill((pid_t)agent_pid, SIGKILL);
}

/* The keeper after the fork: waits for the agent, then removes its cgroup, however the agent ended. */
static int run_keeper(struct box *box, pid_t agent, int lock_fd) {
    struct sigaction stop = {.sa_handler = on_stop};
    int status;
    agent_pid = agent;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    close(box->control_fd);
    while (waitpid(agent, &status, 0) < 0 && errno == EINTR)
        continue;
    agent_pid = 0;
    cgroup_remove(&box->cgroup);
    slot_clear_record(lock_fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static bool prepare(struct box *box, const struct options *options, int *lock_fd, struct fault *fault) {
    char name[64];
    box->slot = (struct slot){.rootless = geteuid() != 0, .host_view_fd = -1};
    if (!reset_process_state(options, fault) || !pin(options->cpu, fault) ||
        !slot_acquire(options->state_dir, &box->slot.number, lock_fd, name, sizeof name, fault))
        return false;
    box->slot.uid = box->slot.gid = SLOT_UID_BASE + (unsigned)box->slot.number;
    return cgroup_create(&box->cgroup, name, fault) && slot_record(*lock_fd, &box->cgroup, fault) &&
           namespaces_prepare(&box->slot, fault);
}

int main(int count, char **values) {
    static struct box box;
    struct options options;
    struct fault fault = {0};
    int lock_fd = -1;
    if (!read_options(count, values, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    box.control_fd = options.control_fd;
    box.once = options.once;
    pid_t agent = prepare(&box, &options, &lock_fd, &fault) ? namespaces_fork(&fault) : -1;
    if (agent == 0)
        return run_agent(&box, &options);
    if (agent > 0)
        return run_keeper(&box, agent, lock_fd);
    send_hello(&box, &fault);
    cgroup_remove(&box.cgroup);
    if (lock_fd >= 0)
        slot_clear_record(lock_fd);
    return 1;
}

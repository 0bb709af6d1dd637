/* The monitor sleeps until an event: the program ends (SIGCHLD), output arrives, the client sends a message, a program
 * calls sysinfo, or the earliest time at which a limit can be exceeded. That is the remaining wall time, or the
 * remaining CPU time divided by the number of CPUs. */
#include "monitor.h"

#include "sysinfo.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* During this time, output stays in the pipes. Most runs end earlier, so that the monitor is not woken for output. */
#define OUTPUT_POLL_DELAY_NS (2 * NS_PER_MS)
#define MIN_SLEEP_NS (NS_PER_MS / 2)
#define DRAIN_TIMEOUT_NS (1000 * NS_PER_MS)
#define OOM_CHECK_NS (100 * NS_PER_MS)

static sigset_t sleep_mask;
static uint64_t cpu_count = 1;

static void on_child(int signal_number) { (void)signal_number; }

/* SIGCHLD is unblocked only in ppoll. Otherwise a child could end between the check and the sleep, and the signal would
 * be lost. */
void monitor_init(void) {
    struct sigaction child_exited = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    sigset_t blocked;
    cpu_set_t cpus;
    sigaction(SIGCHLD, &child_exited, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &sleep_mask);
    sigdelset(&sleep_mask, SIGCHLD);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        cpu_count = (uint64_t)CPU_COUNT(&cpus);
}

static void stop(struct monitor *monitor, enum stop_reason reason) {
    if (monitor->reason == STOP_NONE)
        monitor->reason = reason;
}

/* Reaps the program and orphans that became our children. False if no child is left. */
static bool reap(struct monitor *monitor) {
    struct rusage usage;
    int status;
    while (!monitor->empty) {
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0) {
            monitor->empty = pid < 0 && errno == ECHILD;
            break;
        }
        if ((uint64_t)usage.ru_maxrss * 1024 > monitor->largest_process_bytes)
            monitor->largest_process_bytes = (uint64_t)usage.ru_maxrss * 1024;
        if (pid == monitor->program) {
            monitor->ended_ns = now_ns();
            monitor->program_ended = true;
            monitor->status = status;
        }
    }
    return !monitor->empty;
}

static void read_control(struct monitor *monitor) {
    uint8_t message[16];
    ssize_t size = recv(monitor->control_fd, message, sizeof message, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        stop(monitor, STOP_CLIENT_GONE);
    if (size > 0)
        stop(monitor, STOP_CANCEL); /* during a run, cancel is the only valid message */
}

static uint64_t left(uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; }

static void check_cpu(struct monitor *monitor) {
    if (monitor->cgroup->kind == CGROUP_NONE) {
        proc_sampling_update(&monitor->sampling, monitor->slot, monitor->limits->memory_bytes);
        monitor->cpu_ns = monitor->sampling.cpu_ns;
        if (monitor->sampling.memory_bytes > monitor->limits->memory_bytes)
            stop(monitor, STOP_MEMORY);
    } else {
        monitor->cpu_ns = cgroup_cpu_ns(monitor->cgroup);
        cgroup_sample_peak(monitor->cgroup);
    }
    if (monitor->cpu_ns > monitor->limits->cpu_ms * NS_PER_MS)
        stop(monitor, STOP_CPU);
}

/* The run ends if any of its processes is killed for memory. The event arrives before the kill, and the kernel may
 * still find memory, so the counter is checked for a while. */
static void check_oom(struct monitor *monitor, bool called, uint64_t elapsed_ns) {
    uint64_t count;
    if (called) {
        (void)!read(cgroup_oom_event_fd(monitor->cgroup), &count, sizeof count);
        monitor->oom_until_ns = elapsed_ns + OOM_CHECK_NS;
    }
    if (monitor->oom_until_ns == 0)
        return;
    if (cgroup_has_oom_killed(monitor->cgroup))
        stop(monitor, STOP_MEMORY);
    else if (elapsed_ns > monitor->oom_until_ns)
        monitor->oom_until_ns = 0;
}

/* Time until the next limit can be exceeded. */
static uint64_t time_to_next_check_ns(const struct monitor *monitor, uint64_t elapsed_ns) {
    uint64_t cpus = monitor->limits->processes < cpu_count ? monitor->limits->processes : cpu_count;
    uint64_t wait = left(monitor->limits->wall_ms * NS_PER_MS, elapsed_ns);
    uint64_t cpu_wait = left(monitor->limits->cpu_ms * NS_PER_MS, monitor->cpu_ns) / cpus;
    if (cpu_wait < MIN_SLEEP_NS)
        cpu_wait = MIN_SLEEP_NS;
    if (cpu_wait < wait)
        wait = cpu_wait;
    if (monitor->oom_until_ns != 0)
        wait = wait < MIN_SLEEP_NS ? wait : MIN_SLEEP_NS;
    if (monitor->cgroup->kind == CGROUP_NONE || monitor->cgroup->peak_is_sampled) {
        uint64_t pause = proc_sampling_interval_ns(&monitor->sampling, monitor->limits->memory_bytes, elapsed_ns);
        wait = pause < wait ? pause : wait;
    }
    return wait;
}

static size_t add_output_pipe(struct pollfd *list, size_t count, struct output_pipe *pipe) {
    if (pipe->read_fd < 0)
        return count;
    list[count].fd = pipe->blocked ? pipe->target_fd : pipe->read_fd;
    list[count].events = pipe->blocked ? POLLOUT : POLLIN;
    return count + 1;
}

static bool can_skip_output_poll(const struct monitor *monitor, uint64_t elapsed_ns) {
    const struct outputs *outputs = monitor->outputs;
    return elapsed_ns < OUTPUT_POLL_DELAY_NS && outputs->out.target != OUTPUT_TO_PIPE && outputs->err.target != OUTPUT_TO_PIPE;
}

static void wait_for_event(struct monitor *monitor, uint64_t elapsed_ns) {
    struct pollfd list[5] = {{.fd = monitor->control_fd, .events = POLLIN},
                             {.fd = cgroup_oom_event_fd(monitor->cgroup), .events = POLLIN},
                             {.fd = sysinfo_fd(), .events = POLLIN}};
    uint64_t wait = time_to_next_check_ns(monitor, elapsed_ns);
    size_t count = 3;
    if (can_skip_output_poll(monitor, elapsed_ns)) {
        wait = wait < OUTPUT_POLL_DELAY_NS ? wait : OUTPUT_POLL_DELAY_NS;
    } else {
        count = add_output_pipe(list, count, &monitor->outputs->out);
        count = add_output_pipe(list, count, &monitor->outputs->err);
    }
    struct timespec timeout = {.tv_sec = (time_t)(wait / 1000000000ULL), .tv_nsec = (long)(wait % 1000000000ULL)};
    if (ppoll(list, count, &timeout, &sleep_mask) > 0 && list[0].revents != 0)
        read_control(monitor);
    check_oom(monitor, list[1].revents != 0, elapsed_ns);
    if ((list[2].revents & POLLIN) != 0)
        sysinfo_reply();
}

static void copy_outputs(struct monitor *monitor) {
    output_pipe_copy(&monitor->outputs->out, monitor->outputs);
    output_pipe_copy(&monitor->outputs->err, monitor->outputs);
    if (monitor->outputs->over_limit)
        stop(monitor, STOP_OUTPUT);
    if (monitor->outputs->fault.step != NULL)
        stop(monitor, STOP_FAULT);
}

/* The wall time starts at exec, which on a busy host is later than the wake-up of the child. */
static uint64_t since_start(struct monitor *monitor) {
    uint64_t exec_ns = __atomic_load_n(monitor->exec_ns, __ATOMIC_RELAXED);
    if (exec_ns != 0)
        monitor->started_ns = exec_ns;
    return now_ns() - monitor->started_ns;
}

void monitor_run(struct monitor *monitor) {
    uint64_t checked_ns = 0, elapsed_ns = since_start(monitor);
    if (monitor->cgroup->kind == CGROUP_NONE)
        proc_sampling_begin(&monitor->sampling);
    while (monitor->reason == STOP_NONE) {
        wait_for_event(monitor, elapsed_ns);
        reap(monitor);
        if (monitor->program_ended)
            return;
        elapsed_ns = since_start(monitor);
        if (!can_skip_output_poll(monitor, elapsed_ns))
            copy_outputs(monitor);
        if (elapsed_ns >= monitor->limits->wall_ms * NS_PER_MS)
            stop(monitor, STOP_WALL);
        if (elapsed_ns - checked_ns >= MIN_SLEEP_NS / 2) {
            check_cpu(monitor);
            checked_ns = elapsed_ns;
        }
    }
}

/* The agent is pid 1: all processes in the box are or become its children, so the box is empty when it has no child.
 * kill(-1) signals every process in the pid namespace except the agent. */
void monitor_kill_all(struct monitor *monitor) {
    struct timespec interval = {.tv_nsec = (long)(10 * NS_PER_MS)};
    while (reap(monitor)) {
        cgroup_kill(monitor->cgroup);
        kill(-1, SIGKILL);
        ppoll(NULL, 0, &interval, &sleep_mask);
    }
    if (monitor->ended_ns == 0)
        monitor->ended_ns = now_ns();
}

/* Called after the program ended. A slow reader gets the wall time limit of the program plus one second. */
void monitor_drain(struct monitor *monitor) {
    uint64_t until_ns = monitor->started_ns + monitor->limits->wall_ms * NS_PER_MS + DRAIN_TIMEOUT_NS;
    while (monitor->reason != STOP_OUTPUT && monitor->reason != STOP_CLIENT_GONE && monitor->reason != STOP_CANCEL) {
        struct pollfd list[3] = {{.fd = monitor->control_fd, .events = POLLIN}};
        copy_outputs(monitor);
        size_t count = add_output_pipe(list, 1, &monitor->outputs->out);
        count = add_output_pipe(list, count, &monitor->outputs->err);
        uint64_t now = now_ns();
        if (count == 1 || now >= until_ns)
            break;
        struct timespec timeout = {.tv_nsec = (long)(20 * NS_PER_MS)};
        if (ppoll(list, count, &timeout, NULL) > 0 && list[0].revents != 0)
            read_control(monitor);
    }
    output_pipe_close(&monitor->outputs->out);
    output_pipe_close(&monitor->outputs->err);
}

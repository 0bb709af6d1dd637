/* The watcher sleeps until something happens: the program ends (SIGCHLD), output comes, our master speaks, or the
 * soonest moment at which a limit could be reached: wall time left, or CPU time left spread over all CPUs. A program
 * that calls sysinfo wakes it too. */
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

/* Small outputs wait in their pipes until the program ends: most runs are over before anyone need be woken. */
#define QUIET_NS (2 * NS_PER_MS)
#define SHORTEST_SLEEP_NS (NS_PER_MS / 2)
#define DRAIN_NS (1000 * NS_PER_MS)
#define OOM_NS (100 * NS_PER_MS)

static sigset_t while_asleep;
static uint64_t cpu_count = 1;

static void on_child(int signal_number) { (void)signal_number; }

/* SIGCHLD is let in only while we sleep, so no end of a child can slip between the look and the sleep. */
void watch_init(void) {
    struct sigaction note = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    sigset_t blocked;
    cpu_set_t cpus;
    sigaction(SIGCHLD, &note, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &while_asleep);
    sigdelset(&while_asleep, SIGCHLD);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        cpu_count = (uint64_t)CPU_COUNT(&cpus);
}

static void stop(struct watch *watch, enum stop_reason reason) {
    if (watch->reason == STOP_NONE)
        watch->reason = reason;
}

/* Waits for whoever has ended: the program, or orphans that became ours. False: nobody is left. */
static bool reap(struct watch *watch) {
    struct rusage usage;
    int status;
    while (!watch->empty) {
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0) {
            watch->empty = pid < 0 && errno == ECHILD;
            break;
        }
        if ((uint64_t)usage.ru_maxrss * 1024 > watch->largest_process_bytes)
            watch->largest_process_bytes = (uint64_t)usage.ru_maxrss * 1024;
        if (pid == watch->program) {
            watch->ended_ns = now_ns();
            watch->program_ended = true;
            watch->status = status;
        }
    }
    return !watch->empty;
}

static void hear_master(struct watch *watch) {
    uint8_t message[16];
    ssize_t size = recv(watch->control_fd, message, sizeof message, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        stop(watch, STOP_MASTER_GONE);
    if (size > 0)
        stop(watch, STOP_CANCEL); /* while a run is on there is nothing else to be said */
}

static uint64_t left(uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; }

static void check_cpu(struct watch *watch) {
    if (watch->cgroup->kind == CGROUP_NONE) {
        sample_take(&watch->sample, watch->slot, watch->limits->memory_bytes);
        watch->cpu_ns = watch->sample.cpu_ns;
        if (watch->sample.memory_bytes > watch->limits->memory_bytes)
            stop(watch, STOP_MEMORY);
    } else {
        watch->cpu_ns = cgroup_cpu_ns(watch->cgroup);
        cgroup_look(watch->cgroup);
    }
    if (watch->cpu_ns > watch->limits->cpu_ms * NS_PER_MS)
        stop(watch, STOP_CPU);
}

/* A run in which anybody was killed for memory is over, whoever it was. The kernel tells before it kills, and may find
 * memory yet: so we look again for a while. */
static void check_oom(struct watch *watch, bool called, uint64_t elapsed_ns) {
    uint64_t count;
    if (called) {
        (void)!read(cgroup_oom_event_fd(watch->cgroup), &count, sizeof count);
        watch->oom_until_ns = elapsed_ns + OOM_NS;
    }
    if (watch->oom_until_ns == 0)
        return;
    if (cgroup_has_oom_killed(watch->cgroup))
        stop(watch, STOP_MEMORY);
    else if (elapsed_ns > watch->oom_until_ns)
        watch->oom_until_ns = 0;
}

/* How long nothing can go wrong by itself. */
static uint64_t sleep_ns(const struct watch *watch, uint64_t elapsed_ns) {
    uint64_t cpus = watch->limits->processes < cpu_count ? watch->limits->processes : cpu_count;
    uint64_t wait = left(watch->limits->wall_ms * NS_PER_MS, elapsed_ns);
    uint64_t cpu_wait = left(watch->limits->cpu_ms * NS_PER_MS, watch->cpu_ns) / cpus;
    if (cpu_wait < SHORTEST_SLEEP_NS)
        cpu_wait = SHORTEST_SLEEP_NS;
    if (cpu_wait < wait)
        wait = cpu_wait;
    if (watch->oom_until_ns != 0)
        wait = wait < SHORTEST_SLEEP_NS ? wait : SHORTEST_SLEEP_NS;
    if (watch->cgroup->kind == CGROUP_NONE || watch->cgroup->peak_is_sampled) {
        uint64_t pause = sample_pause_ns(&watch->sample, watch->limits->memory_bytes, elapsed_ns);
        wait = pause < wait ? pause : wait;
    }
    return wait;
}

static size_t add_pump(struct pollfd *list, size_t count, struct pump *pump) {
    if (pump->read_fd < 0)
        return count;
    list[count].fd = pump->blocked ? pump->target_fd : pump->read_fd;
    list[count].events = pump->blocked ? POLLOUT : POLLIN;
    return count + 1;
}

static bool is_quiet(const struct watch *watch, uint64_t elapsed_ns) {
    return elapsed_ns < QUIET_NS && watch->outputs->out.target != PUMP_PIPE && watch->outputs->err.target != PUMP_PIPE;
}

static void sleep_until_something(struct watch *watch, uint64_t elapsed_ns) {
    struct pollfd list[5] = {{.fd = watch->control_fd, .events = POLLIN},
                             {.fd = cgroup_oom_event_fd(watch->cgroup), .events = POLLIN},
                             {.fd = sysinfo_fd(), .events = POLLIN}};
    uint64_t wait = sleep_ns(watch, elapsed_ns);
    size_t count = 3;
    if (is_quiet(watch, elapsed_ns)) {
        wait = wait < QUIET_NS ? wait : QUIET_NS;
    } else {
        count = add_pump(list, count, &watch->outputs->out);
        count = add_pump(list, count, &watch->outputs->err);
    }
    struct timespec timeout = {.tv_sec = (time_t)(wait / 1000000000ULL), .tv_nsec = (long)(wait % 1000000000ULL)};
    if (ppoll(list, count, &timeout, &while_asleep) > 0 && list[0].revents != 0)
        hear_master(watch);
    check_oom(watch, list[1].revents != 0, elapsed_ns);
    if ((list[2].revents & POLLIN) != 0)
        sysinfo_answer();
}

static void pump_both(struct watch *watch) {
    pump_move(&watch->outputs->out, watch->outputs);
    pump_move(&watch->outputs->err, watch->outputs);
    if (watch->outputs->over_limit)
        stop(watch, STOP_OUTPUT);
    if (watch->outputs->fault.step != NULL)
        stop(watch, STOP_FAULT);
}

/* The program's time begins when its process gets to exec, which on a busy machine is well after it was told to go. */
static uint64_t since_start(struct watch *watch) {
    uint64_t exec_ns = __atomic_load_n(watch->exec_ns, __ATOMIC_RELAXED);
    if (exec_ns != 0)
        watch->started_ns = exec_ns;
    return now_ns() - watch->started_ns;
}

void watch_run(struct watch *watch) {
    uint64_t checked_ns = 0, elapsed_ns = since_start(watch);
    if (watch->cgroup->kind == CGROUP_NONE)
        sample_begin(&watch->sample);
    while (watch->reason == STOP_NONE) {
        sleep_until_something(watch, elapsed_ns);
        reap(watch);
        if (watch->program_ended)
            return;
        elapsed_ns = since_start(watch);
        if (!is_quiet(watch, elapsed_ns))
            pump_both(watch);
        if (elapsed_ns >= watch->limits->wall_ms * NS_PER_MS)
            stop(watch, STOP_WALL);
        if (elapsed_ns - checked_ns >= SHORTEST_SLEEP_NS / 2) {
            check_cpu(watch);
            checked_ns = elapsed_ns;
        }
    }
}

/* We are the first process of the box: all that is left in it are our children or will be, so when we have no child
 * the box is empty. kill(-1) reaches everyone in it but us. */
void watch_kill_all(struct watch *watch) {
    struct timespec patience = {.tv_nsec = (long)(10 * NS_PER_MS)};
    while (reap(watch)) {
        cgroup_kill(watch->cgroup);
        kill(-1, SIGKILL);
        ppoll(NULL, 0, &patience, &while_asleep);
    }
    if (watch->ended_ns == 0)
        watch->ended_ns = now_ns();
}

/* The program is gone. A reader that is slow gets as long as the program itself could have had, and a second. */
void watch_drain(struct watch *watch) {
    uint64_t until_ns = watch->started_ns + watch->limits->wall_ms * NS_PER_MS + DRAIN_NS;
    while (watch->reason != STOP_OUTPUT && watch->reason != STOP_MASTER_GONE && watch->reason != STOP_CANCEL) {
        struct pollfd list[3] = {{.fd = watch->control_fd, .events = POLLIN}};
        pump_both(watch);
        size_t count = add_pump(list, 1, &watch->outputs->out);
        count = add_pump(list, count, &watch->outputs->err);
        uint64_t now = now_ns();
        if (count == 1 || now >= until_ns)
            break;
        struct timespec timeout = {.tv_nsec = (long)(20 * NS_PER_MS)};
        if (ppoll(list, count, &timeout, NULL) > 0 && list[0].revents != 0)
            hear_master(watch);
    }
    pump_close(&watch->outputs->out);
    pump_close(&watch->outputs->err);
}

/* One run: prepare, start, monitor, kill, measure, decide, report, clean up. */
#include "run.h"

#include "child.h"
#include "egress.h"
#include "monitor.h"
#include "output_pipes.h"
#include "spawner.h"
#include "wake_affinity.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNTER_STEP_BYTES (256ULL * 1024)

struct run {
    struct box *box;
    const struct request *request;
    int *fds;
    struct workdir *workdir;
    struct outputs outputs;
    struct monitor monitor;
    struct child *child;
    struct usage usage;
    struct report report;
};

static struct run current;

static int choose_stdin(const struct run *run) {
    const struct request *request = run->request;
    struct stat info;
    if (request->stdin_kind == STDIN_PATH)
        return run->workdir->stdin_fd;
    if (request->stdin_kind == STDIN_EMPTY)
        return run->box->null_fd;
    int fd = run->fds[request->stdin_fd];
    /* The program must own the pipe, because it may reopen /dev/stdin. */
    if (!run->box->slot.rootless && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode))
        (void)!fchown(fd, run->box->slot.uid, run->box->slot.gid);
    return fd;
}

/* Moves our end of the pipe to the output_pipe. */
static void open_output(struct run *run, struct output_pipe *pipe, enum output_kind kind, unsigned fd_index, int *pipe_end) {
    pipe->read_fd = *pipe_end;
    *pipe_end = -1;
    if (kind == OUTPUT_FD)
        output_pipe_set_target(pipe, run->fds[fd_index]);
}

static void open_outputs(struct run *run) {
    const struct request *request = run->request;
    struct box *box = run->box;
    struct outputs *outputs = &run->outputs;
    outputs->limit_bytes = request->limits.output_bytes;
    outputs->out.buffer = box->capture;
    outputs->out.capacity = box->stdout_capacity;
    outputs->err.buffer = box->capture + box->stdout_capacity;
    outputs->err.capacity = box->stderr_capacity;
    open_output(run, &outputs->out, request->stdout_kind, request->stdout_fd, &box->prefork.out[0]);
    if (request->stderr_kind != OUTPUT_MERGE)
        open_output(run, &outputs->err, request->stderr_kind, request->stderr_fd, &box->prefork.err[0]);
}

/* Until the child is started, it shares our descriptors, and it keeps 0, 1 and 2. Therefore these belong to the program
 * until it ends, when restore_stdio() closes our copies. */
static bool pass_stdio(struct run *run, struct fault *fault) {
    const int *out = run->box->prefork.out, *err = run->box->prefork.err;
    int target = run->request->stderr_kind == OUTPUT_MERGE ? out[1] : err[1];
    if (dup2(choose_stdin(run), 0) < 0 || dup2(out[1], 1) < 0 || dup2(target, 2) < 0)
        return fail_at(fault, "stdio", -1);
    return true;
}

static void restore_stdio(struct run *run) {
    for (int fd = 0; fd <= 2; fd++)
        dup2(run->box->null_fd, fd);
}

/* Race: the other side of an interaction gets EPIPE when this is closed. Not before the end of the program is recorded,
 * so that the order of the two ends is right. Not later, because a partner that keeps writing would block until all
 * output of this program is delivered. */
static void close_own_stdin(struct run *run) {
    const struct request *request = run->request;
    if (request->stdin_kind != STDIN_FD)
        return;
    if (run->outputs.out.target_fd != run->fds[request->stdin_fd] && run->outputs.err.target_fd != run->fds[request->stdin_fd]) {
        close(run->fds[request->stdin_fd]);
        run->fds[request->stdin_fd] = -1;
    }
}

static bool open_egress(struct run *run, struct fault *fault) {
    if (run->request->egress_count == 0)
        return true;
    if (!run->box->once) {
        errno = EINVAL;
        return fail_at(fault, "egress", -1);
    }
    return egress_open(&run->box->slot, run->request, run->box->control_fd, fault);
}

static bool start(struct run *run, struct fault *fault) {
    struct box *box = run->box;
    struct child *child = run->child;
    if (!workdir_prepare(run->workdir, &box->slot, run->request, run->fds, fault) ||
        !prefork_prepare(box, run->request->egress_count > 0, fault))
        return false;
    open_outputs(run);
    if (!open_egress(run, fault) || !pass_stdio(run, fault))
        return false;
    if (!prefork_wait(box, fault))
        return false;
    if (!cgroup_begin_run(&box->cgroup, &run->request->limits, fault))
        return false;
    run->monitor.program = child->pid;
    run->monitor.started_ns = now_ns();
    prefork_release(&box->prefork); /* before the wake-up: the child runs on our CPU as soon as we sleep */
    pin_to_current_cpu(child->pid);
    child_start_program(child, run->request);
    return true;
}

/* Checks the last steps of the child. If they failed, no program was started. */
static void check_child(struct run *run, struct fault *fault) {
    struct child *child = run->child;
    if (child->started_ns != 0)
        run->monitor.started_ns = child->started_ns;
    if (child->fault.step != NULL)
        *fault = child->fault;
    else if (child->started_ns == 0 && run->monitor.reason == STOP_NONE) {
        errno = ECHILD;
        fail_at(fault, "spawn", -1);
    }
}

/* Order: a fault of the launcher, whatever the program did; then the limit that ended it; then its exit status. */
static void set_verdict(const struct run *run, struct report *report) {
    const struct limits *limits = &run->request->limits;
    enum stop_reason reason = run->monitor.reason;
    if (report->fault.step != NULL)
        report->verdict = VERDICT_SE;
    else if (reason == STOP_OUTPUT)
        report->verdict = VERDICT_OLE, report->limit = LIMIT_OUTPUT;
    else if (run->usage.oom || reason == STOP_MEMORY || report->memory_bytes > limits->memory_bytes)
        report->verdict = VERDICT_MLE, report->limit = LIMIT_MEMORY;
    else if (reason == STOP_CPU || report->cpu_ns > limits->cpu_ms * NS_PER_MS)
        report->verdict = VERDICT_TLE, report->limit = LIMIT_CPU;
    else if (reason == STOP_WALL || report->wall_ns > limits->wall_ms * NS_PER_MS)
        report->verdict = VERDICT_TLE, report->limit = LIMIT_WALL;
    else if (report->exit_signal == SIGXFSZ)
        report->verdict = VERDICT_OLE, report->limit = LIMIT_FILE_SIZE;
    else if (report->exit_signal != 0 || report->exit_code != 0)
        report->verdict = VERDICT_RE, report->limit = run->usage.processes_refused ? LIMIT_PROCESSES : LIMIT_NONE;
    else
        report->verdict = VERDICT_OK;
}

static uint64_t smaller(uint64_t left, uint64_t right) { return left < right ? left : right; }

static void measure(struct run *run, struct report *report) {
    struct monitor *monitor = &run->monitor;
    cgroup_finish_run(&run->box->cgroup, &run->usage);
    if (run->box->cgroup.kind == CGROUP_NONE) {
        proc_sampling_finish(&monitor->sampling, monitor->largest_process_bytes);
        run->usage.cpu_ns = monitor->sampling.cpu_ns;
        run->usage.peak_bytes = monitor->sampling.peak_bytes;
        run->usage.processes_refused = monitor->sampling.tasks_peak >= run->request->limits.processes;
    }
    report->cpu_ns = run->usage.cpu_ns;
    report->memory_bytes = run->usage.peak_bytes;
    if (run->box->cgroup.peak_is_sampled) { /* a peak between two samples is in a process's own peak */
        uint64_t largest = smaller(monitor->largest_process_bytes, run->request->limits.memory_bytes);
        report->memory_bytes = report->memory_bytes > largest ? report->memory_bytes : largest;
    }
    if (report->memory_bytes == 0) /* below the step size of the kernel counter: resident size, at most one step */
        report->memory_bytes = smaller(monitor->largest_process_bytes, COUNTER_STEP_BYTES);
    report->processes_refused = run->usage.processes_refused;
    report->wall_ns = monitor->ended_ns - monitor->started_ns;
    report->ended_ns = monitor->ended_ns;
    report->exit_code = WIFEXITED(monitor->status) ? WEXITSTATUS(monitor->status) : -1;
    report->exit_signal = WIFSIGNALED(monitor->status) ? WTERMSIG(monitor->status) : 0;
    report->output_bytes = run->outputs.total_bytes;
    report->stdout_bytes = run->outputs.out.kept;
    report->stderr_bytes = run->outputs.err.kept;
    report->stdout_truncated = run->outputs.out.truncated;
    report->stderr_truncated = run->outputs.err.truncated;
}

static void supervise(struct run *run, struct report *report) {
    struct monitor *monitor = &run->monitor;
    monitor_run(monitor);
    monitor_kill_all(monitor);
    check_child(run, &report->fault);
    restore_stdio(run);
    close_own_stdin(run);
    monitor_drain(monitor);
    measure(run, report);
    if (monitor->reason == STOP_CANCEL) {
        errno = ECANCELED;
        fail_at(&report->fault, "canceled", -1);
    }
    if (run->outputs.fault.step != NULL && report->fault.step == NULL)
        report->fault = run->outputs.fault;
    if (run->request->collect_count > 0 && report->fault.step == NULL) {
        collect_all(run->workdir->work_fd, run->fds[run->request->collect_to_fd], run->request, report->collected);
        report->collected_count = run->request->collect_count;
    }
}

/* Removes what exists of a run that could not be started. */
static void kill_run(struct run *run) {
    if (run->box->prefork.is_prepared)
        (void)child_wait_ready(run->child); /* it must exist to be killed */
    monitor_kill_all(&run->monitor);
    restore_stdio(run);
    prefork_release(&run->box->prefork);
    output_pipe_close(&run->outputs.out);
    output_pipe_close(&run->outputs.err);
    cgroup_finish_run(&run->box->cgroup, &run->usage);
    run->usage = (struct usage){0};
}

/* Replaces the ipc namespace only if System V objects exist: creating one is expensive, the check is cheap. */
static bool clean_ipc(void) {
    struct shm_info shared = {0};
    struct seminfo semaphores = {0};
    struct msginfo queues = {0};
    union {
        struct seminfo *info;
    } argument = {.info = &semaphores};
    bool known = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shared) >= 0 && semctl(0, 0, SEM_INFO, argument) >= 0 &&
                 msgctl(0, MSG_INFO, (struct msqid_ds *)(void *)&queues) >= 0;
    if (known && shared.used_ids == 0 && semaphores.semusz == 0 && queues.msgpool == 0)
        return true;
    spawner_stop(); /* the spawner and its children would stay in the old namespace */
    return unshare(CLONE_NEWIPC) == 0;
}

static void close_all(int *fds, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static bool clean_up(struct run *run) {
    bool clean = workdir_release(run->workdir, &run->box->slot, run->request) && clean_ipc();
    cgroup_drop_page_cache(&run->box->cgroup);
    return clean;
}

/* Prepares for a run with the same limits. If this fails, the next run tries again and reports the fault. */
static void prepare_next_run(struct run *run) {
    struct fault ignored = {0};
    workdir_mount(run->workdir, &run->box->slot, &run->request->limits, &ignored);
    prefork_prepare(run->box, false, &ignored);
}

static bool send_report(struct box *box, const struct report *report, const struct request *request) {
    char line[REPORT_BYTES_MAX];
    size_t size = report_write(report, request, line, sizeof line);
    return send(box->control_fd, line, size, MSG_NOSIGNAL) == (ssize_t)size;
}

enum run_result run_request(struct box *box, const struct request *request, int *fds) {
    struct run *run = &current;
    struct report *report = &run->report;
    memset(run, 0, sizeof *run);
    run->box = box;
    run->request = request;
    run->fds = fds;
    run->child = &box->prefork.child;
    run->workdir = &box->prefork.workdir;
    run->outputs.out.read_fd = run->outputs.err.read_fd = -1;
    run->monitor = (struct monitor){.slot = &box->slot,
                                    .limits = &request->limits,
                                    .cgroup = &box->cgroup,
                                    .outputs = &run->outputs,
                                    .control_fd = box->control_fd,
                                    .exec_ns = &run->child->started_ns};
    report->cgroup_kind = box->cgroup.kind;
    report->exit_code = -1;
    if (start(run, &report->fault))
        supervise(run, report);
    else
        kill_run(run);
    set_verdict(run, report);
    close_all(fds, request->fd_count);
    bool sent = run->monitor.reason != STOP_CLIENT_GONE && send_report(box, report, request);
    yield_cpu(); /* the client has the report, so it runs before our cleanup */
    bool clean = box->once || clean_up(run); /* a box for one run is discarded as a whole */
    if (sent && clean && !box->once)
        prepare_next_run(run);
    return !sent ? RUN_CLIENT_GONE : clean ? RUN_CLEAN : RUN_CLEANUP_FAILED;
}

enum run_result run_report_fault(struct box *box, const struct request *request, const struct fault *fault) {
    struct report report = {.verdict = VERDICT_SE, .cgroup_kind = box->cgroup.kind, .fault = *fault, .exit_code = -1};
    return send_report(box, &report, request) ? RUN_CLEAN : RUN_CLIENT_GONE;
}

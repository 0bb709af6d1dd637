/* Watching one running program: its limits, its output, its end, our master's word. */
#ifndef ADJUDGE_MONITOR_H
#define ADJUDGE_MONITOR_H

#include "cgroup.h"
#include "output_pipes.h"
#include "proc_sampling.h"

/* Why a run ended, where we ended it. */
enum stop_reason { STOP_NONE, STOP_CPU, STOP_WALL, STOP_MEMORY, STOP_OUTPUT, STOP_CANCEL, STOP_CLIENT_GONE, STOP_FAULT };

struct monitor {
    const struct slot *slot;
    const struct limits *limits;
    struct cgroup *cgroup;
    struct outputs *outputs;
    int control_fd;
    pid_t program;
    uint64_t started_ns, ended_ns;
    const uint64_t *exec_ns; /* when the child came to exec, by its own word; 0 until then */
    uint64_t cpu_ns, largest_process_bytes;
    bool program_ended;
    bool empty; /* nobody is left in the box */
    uint64_t oom_until_ns; /* the OOM killer was called: look for its work until then */
    int status; /* as from wait */
    enum stop_reason reason;
    struct proc_sampling sampling;
};

void monitor_init(void); /* once: how signals reach us */
void monitor_run(struct monitor *monitor);
void monitor_kill_all(struct monitor *monitor); /* nothing of the run is left afterwards; harmless when nothing was */
void monitor_drain(struct monitor *monitor);    /* what is still in the pipes */

#endif

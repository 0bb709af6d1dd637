/* Monitors one running program: limits, output, exit, and messages of the client. */
#ifndef ADJUDGE_MONITOR_H
#define ADJUDGE_MONITOR_H

#include "cgroup.h"
#include "output_pipes.h"
#include "proc_sampling.h"

/* Why the launcher ended a run. */
enum stop_reason { STOP_NONE, STOP_CPU, STOP_WALL, STOP_MEMORY, STOP_OUTPUT, STOP_CANCEL, STOP_CLIENT_GONE, STOP_FAULT };

struct monitor {
    const struct slot *slot;
    const struct limits *limits;
    struct cgroup *cgroup;
    struct outputs *outputs;
    int control_fd;
    pid_t program;
    uint64_t started_ns, ended_ns;
    const uint64_t *exec_ns; /* time of exec as recorded by the child; 0 until then */
    uint64_t cpu_ns, largest_process_bytes;
    bool program_ended;
    bool empty;              /* no process is left in the box */
    uint64_t oom_until_ns;   /* the OOM killer was invoked: check for a kill until then */
    int status;              /* as returned by wait */
    enum stop_reason reason;
    struct proc_sampling sampling;
};

void monitor_init(void);                        /* called once; sets up SIGCHLD */
void monitor_run(struct monitor *monitor);
void monitor_kill_all(struct monitor *monitor); /* afterwards no process of the run is left */
void monitor_drain(struct monitor *monitor);    /* copies what is left in the pipes */

#endif

/* Accounting and limits for a whole process tree: one interface, three implementations (cgroup v2, cgroup v1, none).
 *
 * v1: the agent is a member of the slot's pids and cpuacct cgroups, and programs inherit them; the agent's own CPU time
 *     is subtracted. In the memory cgroup, only the spawner thread is a member: memory is charged to the cgroup of the
 *     first thread, so memory of the agent is not counted, and the OOM killer cannot choose the agent. A write to
 *     cgroup.procs can take milliseconds after idle time; moving only the own thread through "tasks" takes
 *     microseconds. Counters are reset between runs.
 * v2: every run gets a new child cgroup and is cloned into it (CLONE_INTO_CGROUP); the agent stays outside.
 * none: rlimits, and sampling of /proc (proc_sampling.h). */
#ifndef ADJUDGE_CGROUP_H
#define ADJUDGE_CGROUP_H

#include "box.h"
#include "request.h"

#define CGROUP_PATH_MAX 1024
#define CGROUP_DIRS_MAX 3
/* Below this, no process can be set up. A smaller limit of the request is still compared with the peak. */
#define MEMORY_FLOOR_BYTES (2ULL * 1024 * 1024)

enum cgroup_kind { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct usage {
    uint64_t cpu_ns;
    uint64_t peak_bytes;
    bool oom;
    bool processes_refused;
};

struct cgroup {
    enum cgroup_kind kind;
    char dirs[CGROUP_DIRS_MAX][CGROUP_PATH_MAX]; /* created for this slot: v1 memory, pids, cpuacct; v2 one */
    size_t dir_count;

    /* v1: kernel files, open as long as the slot exists */
    int limit_fd, swap_limit_fd, usage_fd, peak_fd, oom_fd, empty_fd, pids_max_fd, pids_events_fd, cpu_fd, memory_tasks_fd,
        oom_event_fd;
    uint64_t limit_set, pids_set, oom_seen, refused_seen;
    uint64_t cpu_start, own_cpu_start, baseline;

    /* v2 */
    int slot_fd, run_fd;
    bool peak_is_sampled; /* kernel before 5.19, without memory.peak: the peak is the maximum of samples */
    uint64_t peak_seen;
    unsigned run_number;
    char run_name[24];
};

/* Called before namespaces are created: selects an implementation and creates the slot's directories. If no cgroup is
 * usable, kind is CGROUP_NONE and the result is true; false only for an unexpected failure. */
bool cgroup_create(struct cgroup *cgroup, const char *name, struct fault *fault);
bool cgroup_enter(struct cgroup *cgroup, struct fault *fault); /* called once, by the agent */
void cgroup_remove(const struct cgroup *cgroup);               /* called by the keeper after the agent has ended */
void cgroup_remove_dir(const char *path);                      /* kills the members, then removes the directory */

bool cgroup_prepare(struct cgroup *cgroup, struct fault *fault); /* creates the cgroup for the next child */
bool cgroup_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault);
int cgroup_clone_fd(const struct cgroup *cgroup); /* for CLONE_INTO_CGROUP; -1: inherit ours */
bool cgroup_join(const struct cgroup *cgroup); /* called by the process or thread that becomes, or clones, a program */
uint64_t cgroup_cpu_ns(struct cgroup *cgroup);
void cgroup_sample_peak(struct cgroup *cgroup); /* if the peak is sampled: takes a sample */
/* v1 kills one process and lets the others continue; v2 kills all of them. Returns a descriptor that is readable when
 * the v1 OOM killer was invoked, or -1. */
int cgroup_oom_event_fd(const struct cgroup *cgroup);
bool cgroup_has_oom_killed(const struct cgroup *cgroup); /* during this run */
void cgroup_kill(struct cgroup *cgroup);
void cgroup_finish_run(struct cgroup *cgroup, struct usage *usage);
void cgroup_drop_page_cache(struct cgroup *cgroup);      /* called after the report is sent */

/* Implementations; called only by cgroup.c. */
bool v1_create(struct cgroup *cgroup, const char *name, struct fault *fault);
bool v1_enter(struct cgroup *cgroup, struct fault *fault);
bool v1_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault);
uint64_t v1_cpu_ns(struct cgroup *cgroup);
void v1_finish_run(struct cgroup *cgroup, struct usage *usage);
void v1_drop_page_cache(struct cgroup *cgroup);
bool v1_has_oom_killed(const struct cgroup *cgroup);
bool v2_create(struct cgroup *cgroup, const char *name, struct fault *fault);
bool v2_prepare(struct cgroup *cgroup, struct fault *fault);
bool v2_join(const struct cgroup *cgroup);
bool v2_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault);
uint64_t v2_cpu_ns(struct cgroup *cgroup);
void v2_sample_peak(struct cgroup *cgroup);
void v2_kill(struct cgroup *cgroup);
void v2_finish_run(struct cgroup *cgroup, struct usage *usage);

/* Directory of our own cgroup in the hierarchy of a controller. */
bool cgroup_own_dir(const char *controller, char *dir, size_t size); /* controller "" means v2 */

#endif

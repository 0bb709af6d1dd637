/* Accounting and caps over a whole process tree: one face, three backs (cgroup v2, cgroup v1, none).
 *
 * v1: the agent itself lives in the slot's pids and cpuacct cgroups and programs inherit them; our own CPU time is
 *     subtracted. Into the memory cgroup only the thread moves that programs are started from: memory belongs to the
 *     first thread, so none of ours is ever counted, nor are we ever the OOM killer's choice. Moving costs milliseconds
 *     after idleness through cgroup.procs, but microseconds for one's own thread through tasks. Counters are reset
 *     between runs.
 * v2: every run gets a fresh child cgroup and is born into it (CLONE_INTO_CGROUP); the agent stays outside.
 * none: rlimits and sampling of /proc; see proc_sampling.h. */
#ifndef ADJUDGE_CGROUP_H
#define ADJUDGE_CGROUP_H

#include "box.h"
#include "request.h"

#define CGROUP_PATH_MAX 1024
#define CGROUP_DIRS_MAX 3
/* No process could even be set up below this; a smaller limit is still judged against the peak. */
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
    char dirs[CGROUP_DIRS_MAX][CGROUP_PATH_MAX]; /* what was created for this slot: v1 memory, pids, cpuacct; v2 one */
    size_t dir_count;

    /* v1: kernel files held open for the life of the slot */
    int limit_fd, swap_limit_fd, usage_fd, peak_fd, oom_fd, empty_fd, pids_max_fd, pids_events_fd, cpu_fd, memory_tasks_fd,
        oom_event_fd;
    uint64_t limit_set, pids_set, oom_seen, refused_seen;
    uint64_t cpu_start, own_cpu_start, baseline;

    /* v2 */
    int slot_fd, run_fd;
    bool peak_is_sampled; /* the kernel (before 5.19) keeps no peak: the largest of many looks is all there is */
    uint64_t peak_seen;
    unsigned run_number;
    char run_name[24];
};

/* Before any namespace: finds what may be used and makes the slot's directories. False only on a surprising failure;
 * where nothing may be used, kind is CGROUP_NONE. */
bool cgroup_create(struct cgroup *cgroup, const char *name, struct fault *fault);
bool cgroup_enter(struct cgroup *cgroup, struct fault *fault); /* by the agent, once */
void cgroup_remove(const struct cgroup *cgroup);               /* by its parent, when the agent is gone */
void cgroup_remove_dir(const char *path);                      /* a left-over: kill what is inside, then remove */

bool cgroup_prepare(struct cgroup *cgroup, struct fault *fault); /* what a child is born in */
bool cgroup_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault);
int cgroup_clone_fd(const struct cgroup *cgroup);                /* for CLONE_INTO_CGROUP; -1: inherit ours */
bool cgroup_join(const struct cgroup *cgroup); /* by whoever will be, or start, a program */
uint64_t cgroup_cpu_ns(struct cgroup *cgroup);
void cgroup_sample_peak(struct cgroup *cgroup); /* where the peak is sampled: the more often, the better it is known */
/* v1 kills one process and goes on; v2 kills all of them. -1, or a descriptor to poll: the OOM killer may be at work. */
int cgroup_oom_event_fd(const struct cgroup *cgroup);
bool cgroup_has_oom_killed(const struct cgroup *cgroup); /* in this run */
void cgroup_kill(struct cgroup *cgroup);
void cgroup_finish_run(struct cgroup *cgroup, struct usage *usage);
void cgroup_drop_page_cache(struct cgroup *cgroup);                        /* after the report: give page cache back */

/* The backs; only cgroup.c calls these. */
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

/* Where a hierarchy is mounted and where we are in it: the directory that our own cgroup is. */
bool cgroup_own_dir(const char *controller, char *dir, size_t size); /* controller "" is v2 */

#endif

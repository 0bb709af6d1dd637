/* Where no cgroup may be used: what the box's processes use, summed from /proc. */
#ifndef ADJUDGE_PROC_SAMPLING_H
#define ADJUDGE_PROC_SAMPLING_H

#include "box.h"

struct proc_sampling {
    uint64_t reaped_cpu_start; /* CPU of children we had waited for before this run */
    uint64_t files_start;      /* what was in the work directory and /tmp before the program came */
    uint64_t cpu_ns;           /* whole tree so far */
    uint64_t memory_bytes;     /* now */
    uint64_t peak_bytes;
    uint64_t tasks_peak;       /* processes and threads */
};

void proc_sampling_begin(struct proc_sampling *sampling);
void proc_sampling_update(struct proc_sampling *sampling, const struct slot *slot, uint64_t memory_limit);
uint64_t proc_sampling_interval_ns(const struct proc_sampling *sampling, uint64_t memory_limit, uint64_t elapsed_ns);
void proc_sampling_finish(struct proc_sampling *sampling, uint64_t largest_process_bytes); /* when all are gone and waited for */

#endif

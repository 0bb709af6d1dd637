/* Resource usage without a cgroup: summed over the processes in /proc of the box. */
#ifndef ADJUDGE_PROC_SAMPLING_H
#define ADJUDGE_PROC_SAMPLING_H

#include "box.h"

struct proc_sampling {
    uint64_t reaped_cpu_start; /* CPU time of children that were reaped before this run */
    uint64_t files_start;      /* size of the files in /work and /tmp before the program started */
    uint64_t cpu_ns;           /* whole process tree, so far */
    uint64_t memory_bytes;     /* at the last sample */
    uint64_t peak_bytes;
    uint64_t tasks_peak;       /* processes and threads */
};

void proc_sampling_begin(struct proc_sampling *sampling);
void proc_sampling_update(struct proc_sampling *sampling, const struct slot *slot, uint64_t memory_limit);
uint64_t proc_sampling_interval_ns(const struct proc_sampling *sampling, uint64_t memory_limit, uint64_t elapsed_ns);
void proc_sampling_finish(struct proc_sampling *sampling, uint64_t largest_process_bytes); /* after all are reaped */

#endif

/* Where no cgroup may be used: what the box's processes use, summed from /proc. */
#ifndef ADJUDGE_SAMPLE_H
#define ADJUDGE_SAMPLE_H

#include "box.h"

#define SAMPLE_INTERVAL_NS (4 * NS_PER_MS)

struct sample {
    uint64_t reaped_cpu_start; /* CPU of children we had waited for before this run */
    uint64_t cpu_ns;           /* whole tree so far */
    uint64_t memory_bytes;     /* now */
    uint64_t peak_bytes;
};

void sample_begin(struct sample *sample);
void sample_take(struct sample *sample, const struct slot *slot, uint64_t memory_limit);
void sample_finish(struct sample *sample, uint64_t largest_process_bytes); /* when all are gone and waited for */

#endif

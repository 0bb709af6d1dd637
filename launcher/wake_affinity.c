/* CPU masks. With a single CPU (a pinned slot) there is nothing to do. */
#include "wake_affinity.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

static cpu_set_t all;
static bool has_choice;

void wake_affinity_init(void) { has_choice = sched_getaffinity(0, sizeof all, &all) == 0 && CPU_COUNT(&all) > 1; }

void pin_to_current_cpu(pid_t task) {
    cpu_set_t here;
    int cpu = has_choice ? sched_getcpu() : -1;
    if (cpu < 0)
        return;
    CPU_ZERO(&here);
    CPU_SET((size_t)cpu, &here);
    sched_setaffinity(task, sizeof here, &here);
}

/* Fails only if all these CPUs were removed from our cpuset. Then the kernel has already chosen others. */
void allow_all_cpus(void) {
    if (has_choice)
        sched_setaffinity(0, sizeof all, &all);
}

void yield_cpu(void) { sched_yield(); }

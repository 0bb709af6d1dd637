/* Keeps wake-ups on one CPU. Waking a task that sleeps on another, idle CPU needs an interrupt there and takes tens of
 * microseconds, four times per run. The task that wakes it is about to sleep, so its own CPU becomes free. Therefore
 * the next task is pinned to the current CPU before it is woken, and allow_all_cpus() removes the pin before exec. This
 * is only an optimization: failures are ignored. */
#ifndef ADJUDGE_WAKE_AFFINITY_H
#define ADJUDGE_WAKE_AFFINITY_H

#include <sys/types.h>

void wake_affinity_init(void);       /* called once by the agent: the CPUs that programs may use */
void pin_to_current_cpu(pid_t task); /* a sleeping task that we wake next: it wakes on our CPU */
void allow_all_cpus(void);           /* called by the pinned task */
void yield_cpu(void);                /* lets the task run first that we have just woken on our CPU */

#endif

/* Passing a task on within one CPU. To wake somebody who sleeps on another, idle one means an interrupt there and a CPU
 * coming out of its sleep: tens of microseconds, four times a run, where the sleeper could have had our own CPU, which
 * we are about to leave. So who is waked next is told to wake here. It is a hint for the way to the program, not for
 * the program: allow_all_cpus() gives it all CPUs again. Where nothing can be hinted, nothing is lost but time. */
#ifndef ADJUDGE_WAKE_AFFINITY_H
#define ADJUDGE_WAKE_AFFINITY_H

#include <sys/types.h>

void wake_affinity_init(void);       /* by the agent, once: which CPUs programs may use */
void pin_to_current_cpu(pid_t task); /* who sleeps, and is to be waked by us, will wake on our CPU */
void allow_all_cpus(void);      /* by who was brought: any CPU will do from now on */
void yield_cpu(void);   /* whoever we have just waked on our CPU goes first */

#endif

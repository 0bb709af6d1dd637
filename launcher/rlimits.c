/* Resource limits. Hard limits are only lowered, because root in a container may not raise them. */
#include "rlimits.h"

#include "spawner.h"

#include <errno.h>
#include <sys/resource.h>

/* Without a cgroup, RLIMIT_NPROC also counts the agent's threads and the keeper, in the same user namespace. */
#define OUR_PROCESSES (2 + SPAWNER_THREADS)
#define QUEUED_SIGNALS 1024
#define THREAD_STACK_BYTES (64ULL * 1024 * 1024)

static rlim_t hard[RLIM_NLIMITS];

void rlimits_read_hard(void) {
    struct rlimit now;
    for (int which = 0; which < RLIM_NLIMITS; which++)
        hard[which] = getrlimit((__rlimit_resource_t)which, &now) == 0 ? now.rlim_max : 0;
}

static bool lower(__rlimit_resource_t which, uint64_t value) {
    struct rlimit wanted;
    wanted.rlim_cur = wanted.rlim_max = value < hard[which] ? value : hard[which];
    return setrlimit(which, &wanted) == 0;
}

static uint64_t stack_bytes(const struct limits *limits, enum cgroup_kind kind) {
    uint64_t stack = limits->stack_bytes > 0 ? limits->stack_bytes : limits->memory_bytes;
    /* Thread stacks count as data, and their default size is this limit. */
    return kind == CGROUP_NONE && limits->stack_bytes == 0 && stack > THREAD_STACK_BYTES ? THREAD_STACK_BYTES : stack;
}

/* Without a cgroup, memory is sampled (proc_sampling.c), and these limits only stop what is too fast for sampling.
 * Without /proc there is no sampling, and the memory limit itself is enforced per process. */
static const char *apply_without_cgroup(const struct limits *limits, uint64_t stack, bool sampled) {
    if (!lower(RLIMIT_DATA, sampled ? 2 * limits->memory_bytes + limits->processes * stack : limits->memory_bytes))
        return "limit_data";
    if (!lower(RLIMIT_NPROC, limits->processes + OUR_PROCESSES))
        return "limit_processes";
    return NULL;
}

const char *rlimits_apply_fixed(void) {
    /* 1, not 0: with a limit of 0, the kernel still starts the program of a piped core_pattern, on the host. With 1 it
     * does not, because it takes that for a crash of the handler itself. No core file is created with either. */
    if (!lower(RLIMIT_CORE, 1))
        return "limit_core";
    if (!lower(RLIMIT_MEMLOCK, 64 * 1024))
        return "limit_locked_memory";
    /* All boxes of an unprivileged user share that user's limit, so that one box must not use it up. */
    if (!lower(RLIMIT_SIGPENDING, QUEUED_SIGNALS))
        return "limit_signals";
    return lower(RLIMIT_MSGQUEUE, 0) ? NULL : "limit_queues";
}

const char *rlimits_apply(const struct limits *limits, enum cgroup_kind kind, bool sampled) {
    uint64_t stack = stack_bytes(limits, kind);
    if (!lower(RLIMIT_NOFILE, limits->open_files))
        return "limit_open_files";
    if (!lower(RLIMIT_FSIZE, limits->file_bytes))
        return "limit_file_size";
    if (!lower(RLIMIT_STACK, stack))
        return "limit_stack";
    /* Last barrier if the monitor fails: at least one second above the limit, per process. */
    if (!lower(RLIMIT_CPU, limits->cpu_ms / 1000 + 2))
        return "limit_cpu";
    return kind == CGROUP_NONE ? apply_without_cgroup(limits, stack, sampled) : NULL;
}

/* cgroup v1: memory, pids and cpuacct are separate hierarchies. See cgroup.h for their members. */
#include "cgroup.h"

#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Page cache left by earlier runs is dropped when it exceeds this. */
#define BASELINE_BYTES_MAX (8ULL * 1024 * 1024)
#define PAGE_BYTES 4096ULL

static const char *const controllers[CGROUP_DIRS_MAX] = {"memory", "pids", "cpuacct"};

static int open_file(const char *dir, const char *file, int flags) {
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return open(path, flags | O_CLOEXEC);
}

static bool open_files(struct cgroup *cgroup) {
    const char *memory = cgroup->dirs[0], *pids = cgroup->dirs[1], *cpu = cgroup->dirs[2];
    cgroup->limit_fd = open_file(memory, "memory.limit_in_bytes", O_WRONLY);
    cgroup->swap_limit_fd = open_file(memory, "memory.memsw.limit_in_bytes", O_WRONLY); /* -1: no swap accounting */
    cgroup->usage_fd = open_file(memory, "memory.usage_in_bytes", O_RDONLY);
    cgroup->peak_fd = open_file(memory, "memory.max_usage_in_bytes", O_RDWR);
    cgroup->oom_fd = open_file(memory, "memory.oom_control", O_RDONLY);
    cgroup->empty_fd = open_file(memory, "memory.force_empty", O_WRONLY);
    cgroup->pids_max_fd = open_file(pids, "pids.max", O_WRONLY);
    cgroup->pids_events_fd = open_file(pids, "pids.events", O_RDONLY);
    cgroup->cpu_fd = open_file(cpu, "cpuacct.usage", O_RDONLY);
    cgroup->memory_tasks_fd = open_file(memory, "tasks", O_WRONLY);
    return cgroup->limit_fd >= 0 && cgroup->usage_fd >= 0 && cgroup->peak_fd >= 0 && cgroup->oom_fd >= 0 &&
           cgroup->pids_max_fd >= 0 && cgroup->cpu_fd >= 0 && cgroup->memory_tasks_fd >= 0;
}

/* Notifies about every OOM in the cgroup. Without it, a run with a killed child lasts until its first process ends. */
static void open_oom_event(struct cgroup *cgroup) {
    char line[32];
    int control_fd = open_file(cgroup->dirs[0], "cgroup.event_control", O_WRONLY);
    cgroup->oom_event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int size = snprintf(line, sizeof line, "%d %d", cgroup->oom_event_fd, cgroup->oom_fd);
    if (cgroup->oom_event_fd >= 0 && (control_fd < 0 || write(control_fd, line, (size_t)size) != size)) {
        close(cgroup->oom_event_fd);
        cgroup->oom_event_fd = -1;
    }
    if (control_fd >= 0)
        close(control_fd);
}

/* False without a fault if we have no permission to use v1. */
bool v1_create(struct cgroup *cgroup, const char *name, struct fault *fault) {
    char own[CGROUP_PATH_MAX];
    for (size_t i = 0; i < CGROUP_DIRS_MAX; i++) {
        if (!cgroup_own_dir(controllers[i], own, sizeof own))
            return false;
        if ((size_t)snprintf(cgroup->dirs[i], CGROUP_PATH_MAX, "%s/%s", own, name) >= CGROUP_PATH_MAX)
            return false;
        cgroup_remove_dir(cgroup->dirs[i]);
        if (mkdir(cgroup->dirs[i], 0755) != 0)
            return errno == EACCES || errno == EPERM || errno == EROFS ? false : fail_at(fault, "cgroup_create", (int)i);
        cgroup->dir_count = i + 1;
    }
    cgroup->limit_set = UINT64_MAX; /* a new cgroup has no limit */
    if (!open_files(cgroup))
        return fail_at(fault, "cgroup_open", -1);
    open_oom_event(cgroup);
    return true;
}

/* "tasks" moves one thread. Unlike cgroup.procs, it does not block all forks on the host. */
bool v1_enter(struct cgroup *cgroup, struct fault *fault) {
    for (size_t i = 1; i < CGROUP_DIRS_MAX; i++) {
        int fd = open_file(cgroup->dirs[i], "tasks", O_WRONLY);
        if (fd < 0 || write(fd, "0", 1) != 1)
            return fail_at(fault, "cgroup_enter", (int)i);
        close(fd);
    }
    return true;
}

static uint64_t own_cpu_ns(void) {
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return (uint64_t)spent.tv_sec * 1000000000ULL + (uint64_t)spent.tv_nsec;
}

/* The kernel requires memory limit <= memory+swap limit at all times, so the order of the writes depends on the
 * direction. */
static bool set_limit(struct cgroup *cgroup, uint64_t limit) {
    bool raise = limit > cgroup->limit_set;
    if (limit == cgroup->limit_set)
        return true;
    if (raise && cgroup->swap_limit_fd >= 0 && !put_number(cgroup->swap_limit_fd, limit))
        return false;
    if (!put_number(cgroup->limit_fd, limit))
        return false;
    if (!raise && cgroup->swap_limit_fd >= 0 && !put_number(cgroup->swap_limit_fd, limit))
        return false;
    cgroup->limit_set = limit;
    return true;
}

bool v1_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault) {
    uint64_t memory = limits->memory_bytes > MEMORY_FLOOR_BYTES ? limits->memory_bytes : MEMORY_FLOOR_BYTES;
    if (!get_number(cgroup->usage_fd, &cgroup->baseline))
        return fail_at(fault, "cgroup_usage", -1);
    if (!set_limit(cgroup, (cgroup->baseline + memory) / PAGE_BYTES * PAGE_BYTES))
        return fail_at(fault, "cgroup_memory", -1);
    if (cgroup->pids_set != limits->processes && !put_number(cgroup->pids_max_fd, limits->processes + 1 + SPAWNER_THREADS))
        return fail_at(fault, "cgroup_pids", -1);
    cgroup->pids_set = limits->processes;
    if (!put_number(cgroup->peak_fd, 0))
        return fail_at(fault, "cgroup_reset", -1);
    cgroup->own_cpu_start = own_cpu_ns();
    if (!get_number(cgroup->cpu_fd, &cgroup->cpu_start))
        return fail_at(fault, "cgroup_cpu", -1);
    return true;
}

uint64_t v1_cpu_ns(struct cgroup *cgroup) {
    uint64_t all, own = own_cpu_ns() - cgroup->own_cpu_start;
    if (!get_number(cgroup->cpu_fd, &all))
        return 0;
    all -= cgroup->cpu_start;
    return all > own ? all - own : 0;
}

static uint64_t oom_kills(const struct cgroup *cgroup) {
    char text[256];
    return read_once(cgroup->oom_fd, text, sizeof text) > 0 ? find_counter(text, "oom_kill") : cgroup->oom_seen;
}

bool v1_has_oom_killed(const struct cgroup *cgroup) { return oom_kills(cgroup) > cgroup->oom_seen; }

void v1_finish_run(struct cgroup *cgroup, struct usage *usage) {
    char text[256];
    uint64_t peak;
    usage->cpu_ns = v1_cpu_ns(cgroup);
    if (get_number(cgroup->peak_fd, &peak) && peak > cgroup->baseline)
        usage->peak_bytes = peak - cgroup->baseline;
    uint64_t kills = oom_kills(cgroup);
    usage->oom = kills > cgroup->oom_seen;
    cgroup->oom_seen = kills;
    if (cgroup->pids_events_fd >= 0 && read_once(cgroup->pids_events_fd, text, sizeof text) > 0) {
        uint64_t refused = find_counter(text, "max");
        usage->processes_refused = refused > cgroup->refused_seen;
        cgroup->refused_seen = refused;
    }
}

void v1_drop_page_cache(struct cgroup *cgroup) {
    uint64_t usage;
    if (cgroup->empty_fd >= 0 && get_number(cgroup->usage_fd, &usage) && usage > BASELINE_BYTES_MAX)
        put_number(cgroup->empty_fd, 1);
}

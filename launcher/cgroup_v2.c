/* cgroup v2: one directory per slot, and one child directory per run, into which the program is cloned. */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LEAF "adjudge-main"
#ifndef PEAK_FILE
#define PEAK_FILE "memory.peak"
#endif

static bool has_controllers(const char *dir) {
    char path[CGROUP_PATH_MAX + 32], text[512];
    snprintf(path, sizeof path, "%s/cgroup.controllers", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool both = read_text(fd, text, sizeof text) > 0 && strstr(text, "memory") != NULL && strstr(text, "pids") != NULL;
    close(fd);
    return both;
}

static bool enable_controllers(const char *dir) {
    char path[CGROUP_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    return put_text(AT_FDCWD, path, "+memory +pids");
}

/* A cgroup with members cannot enable controllers for its children. Therefore its members are moved to a leaf. */
static bool move_members_to_leaf(const char *dir) {
    char leaf[CGROUP_PATH_MAX + 32], path[CGROUP_PATH_MAX + 64], pid[32];
    snprintf(leaf, sizeof leaf, "%s/" LEAF, dir);
    if (mkdir(leaf, 0755) != 0 && errno != EEXIST)
        return false;
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    FILE *members = fopen(path, "re");
    if (members == NULL)
        return false;
    snprintf(path, sizeof path, "%s/cgroup.procs", leaf);
    while (fscanf(members, "%31s", pid) == 1)
        put_text(AT_FDCWD, path, pid); /* a process that has just ended is ignored */
    fclose(members);
    return true;
}

/* The directory in which slots are created: our own cgroup, or its parent if we are in the leaf. */
static bool find_parent(char *dir, size_t size) {
    if (!cgroup_own_dir("", dir, size))
        return false;
    char *last = strrchr(dir, '/');
    if (last != NULL && strcmp(last + 1, LEAF) == 0)
        *last = '\0';
    return has_controllers(dir);
}

/* False without a fault if v2 is not usable: not mounted, no controllers, or not delegated. */
bool v2_create(struct cgroup *cgroup, const char *name, struct fault *fault) {
    char parent[CGROUP_PATH_MAX];
    char *dir = cgroup->dirs[0];
    if (!find_parent(parent, sizeof parent))
        return false;
    for (int tries = 0; !enable_controllers(parent); tries++)
        if (errno != EBUSY || tries == 5 || !move_members_to_leaf(parent))
            return false;
    if ((size_t)snprintf(dir, CGROUP_PATH_MAX, "%s/%s", parent, name) >= CGROUP_PATH_MAX)
        return false;
    cgroup_remove_dir(dir);
    if (mkdir(dir, 0755) != 0)
        return errno == EACCES || errno == EPERM || errno == EROFS ? false : fail_at(fault, "cgroup_create", -1);
    cgroup->dir_count = 1;
    if (!enable_controllers(dir))
        return fail_at(fault, "cgroup_enable", -1);
    cgroup->slot_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->slot_fd < 0)
        return fail_at(fault, "cgroup_open", -1);
    cgroup->peak_is_sampled = faccessat(cgroup->slot_fd, PEAK_FILE, R_OK, 0) != 0;
    return true;
}

static bool put_limit(int dir_fd, const char *file, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return put_text(dir_fd, file, text);
}

static uint64_t read_counter(int dir_fd, const char *file, const char *name) {
    char text[2048];
    int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read_text(fd, text, sizeof text);
    close(fd);
    if (got <= 0)
        return 0;
    return name == NULL ? strtoull(text, NULL, 10) : find_counter(text, name);
}

uint64_t v2_cpu_ns(struct cgroup *cgroup) {
    return read_counter(cgroup->run_fd, "cpu.stat", "usage_usec") * NS_PER_US - cgroup->cpu_start;
}

bool v2_prepare(struct cgroup *cgroup, struct fault *fault) {
    snprintf(cgroup->run_name, sizeof cgroup->run_name, "run-%u", cgroup->run_number++);
    if (mkdirat(cgroup->slot_fd, cgroup->run_name, 0755) != 0)
        return fail_at(fault, "cgroup_run", -1);
    cgroup->run_fd = openat(cgroup->slot_fd, cgroup->run_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return cgroup->run_fd >= 0 || fail_at(fault, "cgroup_run", -1);
}

bool v2_join(const struct cgroup *cgroup) { return put_text(cgroup->run_fd, "cgroup.procs", "0"); }

bool v2_begin_run(struct cgroup *cgroup, const struct limits *limits, struct fault *fault) {
    uint64_t memory = limits->memory_bytes > MEMORY_FLOOR_BYTES ? limits->memory_bytes : MEMORY_FLOOR_BYTES;
    if (!put_limit(cgroup->run_fd, "memory.max", memory))
        return fail_at(fault, "cgroup_memory", -1);
    if (!put_text(cgroup->run_fd, "memory.swap.max", "0") && errno != ENOENT)
        return fail_at(fault, "cgroup_swap", -1);
    if (!put_text(cgroup->run_fd, "memory.oom.group", "1"))
        return fail_at(fault, "cgroup_oom_group", -1);
    if (!put_limit(cgroup->run_fd, "pids.max", limits->processes))
        return fail_at(fault, "cgroup_pids", -1);
    cgroup->peak_seen = cgroup->cpu_start = 0;
    cgroup->cpu_start = v2_cpu_ns(cgroup);
    return true;
}

void v2_sample_peak(struct cgroup *cgroup) {
    uint64_t now = read_counter(cgroup->run_fd, "memory.current", NULL);
    if (now > cgroup->peak_seen)
        cgroup->peak_seen = now;
}

void v2_kill(struct cgroup *cgroup) {
    if (cgroup->run_fd >= 0)
        put_text(cgroup->run_fd, "cgroup.kill", "1");
}

void v2_finish_run(struct cgroup *cgroup, struct usage *usage) {
    struct timespec pause = {.tv_nsec = 200000};
    if (cgroup->run_fd < 0)
        return;
    usage->cpu_ns = v2_cpu_ns(cgroup);
    usage->peak_bytes = cgroup->peak_is_sampled ? cgroup->peak_seen : read_counter(cgroup->run_fd, PEAK_FILE, NULL);
    usage->oom = read_counter(cgroup->run_fd, "memory.events", "oom_kill") > 0;
    usage->processes_refused = read_counter(cgroup->run_fd, "pids.events", "max") > 0;
    close(cgroup->run_fd);
    cgroup->run_fd = -1;
    /* Race: a killed process leaves the cgroup shortly after it was reaped. */
    for (int tries = 0; tries < 5000 && unlinkat(cgroup->slot_fd, cgroup->run_name, AT_REMOVEDIR) != 0 && errno == EBUSY; tries++)
        nanosleep(&pause, NULL);
}

/* Samples /proc. The result is an estimate: a peak between two samples is only seen in the maximum resident size that
 * the kernel keeps for each process, and is limited by rlimits. */
#include "proc_sampling.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE_BYTES 4096ULL

static uint64_t reaped_cpu_ns(void) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000ULL +
           ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000ULL;
}

static ssize_t read_proc(int proc_fd, const char *pid, const char *file, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "%.20s/%s", pid, file);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read_text(fd, text, size);
    close(fd);
    return got;
}

struct sums {
    uint64_t cpu_ns, resident_bytes, anonymous_bytes, tasks;
};

/* Fields 14 to 17: utime, stime and those of reaped children, in ticks; 20: threads. The name before them may contain
 * any character. */
static void add_stat(struct sums *sums, const char *text) {
    unsigned long long user, system, child_user, child_system, threads;
    const char *after = strrchr(text, ')');
    if (after == NULL || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %llu",
                                &user, &system, &child_user, &child_system, &threads) != 5)
        return;
    sums->cpu_ns += (user + system + child_user + child_system) * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
    sums->tasks += threads;
}

static void add_process(struct sums *sums, int proc_fd, const char *pid) {
    char text[1024];
    unsigned long long resident, shared;
    if (read_proc(proc_fd, pid, "stat", text, sizeof text) > 0)
        add_stat(sums, text);
    if (read_proc(proc_fd, pid, "statm", text, sizeof text) > 0 && sscanf(text, "%*u %llu %llu", &resident, &shared) == 2) {
        sums->resident_bytes += resident * PAGE_BYTES;
        sums->anonymous_bytes += (resident - shared) * PAGE_BYTES;
    }
}

/* Proportional set size: shared pages count once in total. It is expensive to read, so only if the plain sum is over
 * the limit. */
static void add_proportional(struct sums *sums, int proc_fd, const char *pid) {
    char text[2048];
    const char *line = read_proc(proc_fd, pid, "smaps_rollup", text, sizeof text) > 0 ? strstr(text, "\nPss:") : NULL;
    if (line != NULL)
        sums->resident_bytes += strtoull(line + 5, NULL, 10) * 1024ULL;
}

static struct sums sum_over_box(int proc_fd, void (*add)(struct sums *, int, const char *)) {
    struct sums sums = {0};
    int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, "1") != 0)
            add(&sums, proc_fd, entry->d_name);
    if (entries != NULL)
        closedir(entries);
    return sums;
}

static uint64_t file_bytes(void) {
    static const char *const dirs[] = {BOX_ROOT BOX_WORK, BOX_ROOT BOX_TMP};
    struct statfs info;
    uint64_t bytes = 0;
    for (size_t i = 0; i < 2; i++)
        if (statfs(dirs[i], &info) == 0)
            bytes += (uint64_t)(info.f_blocks - info.f_bfree) * PAGE_BYTES;
    return bytes;
}

/* Memory that is not attributed to a process: files in tmpfs, and System V segments, attached or not. */
static uint64_t unattributed_bytes(const struct proc_sampling *sampling) {
    struct shm_info shared = {0};
    uint64_t files = file_bytes();
    shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&shared);
    return (files > sampling->files_start ? files - sampling->files_start : 0) + (uint64_t)shared.shm_rss * PAGE_BYTES;
}

void proc_sampling_begin(struct proc_sampling *sampling) {
    *sampling = (struct proc_sampling){.reaped_cpu_start = reaped_cpu_ns(), .files_start = file_bytes()};
}

static uint64_t larger(uint64_t left, uint64_t right) { return left > right ? left : right; }

void proc_sampling_update(struct proc_sampling *sampling, const struct slot *slot, uint64_t memory_limit) {
    if (slot->proc_rw_fd < 0)
        return;
    struct sums sums = sum_over_box(slot->proc_rw_fd, add_process);
    uint64_t unshared = sums.anonymous_bytes + unattributed_bytes(sampling);
    sampling->cpu_ns = larger(sampling->cpu_ns, reaped_cpu_ns() - sampling->reaped_cpu_start + sums.cpu_ns);
    sampling->tasks_peak = larger(sampling->tasks_peak, sums.tasks);
    if (larger(sums.resident_bytes, unshared) > memory_limit) {
        struct sums proportional = sum_over_box(slot->proc_rw_fd, add_proportional);
        uint64_t all = sums.resident_bytes, once = proportional.resident_bytes;
        uint64_t shared = all > once ? all - once : 0;
        sums.resident_bytes = proportional.resident_bytes;
        unshared = unshared > shared ? unshared - shared : 0;
    }
    sampling->memory_bytes = larger(sums.resident_bytes, unshared);
    sampling->peak_bytes = larger(sampling->peak_bytes, sampling->memory_bytes);
}

/* Pages cannot be touched faster. This bounds how far a program can exceed its limit between two samples. */
#define TOUCH_BYTES_PER_MS (4ULL * 1024 * 1024)

uint64_t proc_sampling_interval_ns(const struct proc_sampling *sampling, uint64_t memory_limit, uint64_t elapsed_ns) {
    uint64_t headroom = memory_limit > sampling->memory_bytes ? memory_limit - sampling->memory_bytes : 0;
    uint64_t interval = headroom / TOUCH_BYTES_PER_MS * NS_PER_MS;
    uint64_t longest = elapsed_ns < 10 * NS_PER_MS ? NS_PER_MS : 4 * NS_PER_MS;
    if (interval > longest)
        interval = longest;
    return interval < NS_PER_MS / 4 ? NS_PER_MS / 4 : interval;
}

void proc_sampling_finish(struct proc_sampling *sampling, uint64_t largest_process_bytes) {
    uint64_t cpu = reaped_cpu_ns() - sampling->reaped_cpu_start;
    if (cpu > sampling->cpu_ns || sampling->cpu_ns - cpu < 20 * NS_PER_MS)
        sampling->cpu_ns = cpu; /* exact; ticks are an estimate. A larger sum includes unreaped children. */
    sampling->peak_bytes = larger(sampling->peak_bytes, largest_process_bytes);
}

/* Sampling of /proc. Fair rather than exact: a burst between two samples is caught by the largest resident size that
 * the kernel kept for each process, and by rlimits. */
#include "sample.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* utime, stime and those of waited-for children: fields 14 to 17, in ticks; the name before may hold anything. */
static uint64_t process_cpu_ns(int proc_fd, const char *pid) {
    char text[1024];
    unsigned long long user, system, child_user, child_system;
    if (read_proc(proc_fd, pid, "stat", text, sizeof text) <= 0)
        return 0;
    const char *after = strrchr(text, ')');
    if (after == NULL || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user, &system,
                                &child_user, &child_system) != 4)
        return 0;
    return (user + system + child_user + child_system) * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t resident_bytes(int proc_fd, const char *pid) {
    char text[256];
    unsigned long long pages;
    if (read_proc(proc_fd, pid, "statm", text, sizeof text) <= 0 || sscanf(text, "%*u %llu", &pages) != 1)
        return 0;
    return pages * 4096ULL;
}

/* Pages shared by several processes count once in all; dearer to read, so only asked when the plain sum is too much. */
static uint64_t proportional_bytes(int proc_fd, const char *pid) {
    char text[2048];
    if (read_proc(proc_fd, pid, "smaps_rollup", text, sizeof text) <= 0)
        return resident_bytes(proc_fd, pid);
    const char *line = strstr(text, "\nPss:");
    return line != NULL ? strtoull(line + 5, NULL, 10) * 1024ULL : 0;
}

static uint64_t sum_over_box(int proc_fd, uint64_t (*figure)(int, const char *)) {
    uint64_t sum = 0;
    int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && strcmp(entry->d_name, "1") != 0)
            sum += figure(proc_fd, entry->d_name);
    if (entries != NULL)
        closedir(entries);
    return sum;
}

void sample_begin(struct sample *sample) { *sample = (struct sample){.reaped_cpu_start = reaped_cpu_ns()}; }

void sample_take(struct sample *sample, const struct slot *slot, uint64_t memory_limit) {
    if (slot->proc_rw_fd < 0)
        return;
    uint64_t cpu = reaped_cpu_ns() - sample->reaped_cpu_start + sum_over_box(slot->proc_rw_fd, process_cpu_ns);
    if (cpu > sample->cpu_ns)
        sample->cpu_ns = cpu;
    sample->memory_bytes = sum_over_box(slot->proc_rw_fd, resident_bytes);
    if (sample->memory_bytes > memory_limit)
        sample->memory_bytes = sum_over_box(slot->proc_rw_fd, proportional_bytes);
    if (sample->memory_bytes > sample->peak_bytes)
        sample->peak_bytes = sample->memory_bytes;
}

void sample_finish(struct sample *sample, uint64_t largest_process_bytes) {
    uint64_t cpu = reaped_cpu_ns() - sample->reaped_cpu_start;
    if (cpu > sample->cpu_ns || sample->cpu_ns - cpu < 20 * NS_PER_MS)
        sample->cpu_ns = cpu; /* exact; ticks were only an estimate. A larger sum had children nobody waited for. */
    if (largest_process_bytes > sample->peak_bytes)
        sample->peak_bytes = largest_process_bytes;
}

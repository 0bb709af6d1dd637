/* The report: one line of JSON, judge protocol v1. docs/reference/launcher.md describes every key. */
#ifndef ADJUDGE_REPORT_H
#define ADJUDGE_REPORT_H

#include "cgroup.h"
#include "collect.h"

#define REPORT_BYTES_MAX 8192

/* Zero is not a verdict, so that a report which was never filled in becomes SE. */
enum verdict { VERDICT_NONE, VERDICT_OK, VERDICT_TLE, VERDICT_MLE, VERDICT_OLE, VERDICT_RE, VERDICT_SE };
enum limit_kind { LIMIT_NONE, LIMIT_CPU, LIMIT_WALL, LIMIT_MEMORY, LIMIT_OUTPUT, LIMIT_PROCESSES, LIMIT_FILE_SIZE };

struct report {
    enum verdict verdict;
    enum limit_kind limit;
    enum cgroup_kind cgroup_kind;
    struct fault fault;
    uint64_t cpu_ns, wall_ns, memory_bytes, ended_ns, output_bytes, stdout_bytes, stderr_bytes;
    int exit_code, exit_signal;
    bool stdout_truncated, stderr_truncated, processes_refused;
    size_t collected_count;
    struct collected collected[REQUEST_COLLECT_MAX];
};

size_t report_write(const struct report *report, const struct request *request, char *line, size_t size);
/* First message of a launcher: it is ready, or why it is not ({"hello": …}). */
size_t report_hello(const struct slot *slot, enum cgroup_kind kind, const struct fault *fault, char *line, size_t size);

#endif

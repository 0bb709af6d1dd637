/* Writes the report. All strings are constants or were validated by the request parser, so none needs escaping. */
#include "report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const verdict_names[] = {"SE", "OK", "TLE", "MLE", "OLE", "RE", "SE"};
static const char *const status_names[] = {"System Error",          "Finished",      "Time Limit Exceeded", "Memory Limit Exceeded",
                                           "Output Limit Exceeded", "Runtime Error", "System Error"};
static const char *const limit_names[] = {"", "cpu", "wall", "memory", "output", "processes", "file_size"};
static const char *const source_names[] = {"rlimit", "cgroup1", "cgroup2"};

struct line {
    char *text;
    size_t size, used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int wrote = vsnprintf(line->text + line->used, line->size - line->used, format, values);
    va_end(values);
    if (wrote > 0)
        line->used += (size_t)wrote < line->size - line->used ? (size_t)wrote : line->size - line->used - 1;
}

static const char *yes_or_no(bool value) { return value ? "true" : "false"; }

static void add_fault(struct line *line, const struct fault *fault) {
    if (fault->step == NULL) {
        add(line, "\"sandbox_error\":\"\",\"error\":\"\",\"error_step\":\"\",\"error_errno\":0,\"error_index\":-1");
        return;
    }
    const char *name = strerrorname_np(fault->err);
    add(line, "\"sandbox_error\":\"%s:%s\",\"error\":\"%s\",", fault->step, name != NULL ? name : "0",
        fault->err != 0 ? strerror(fault->err) : "");
    add(line, "\"error_step\":\"%s\",\"error_errno\":%d,\"error_index\":%d", fault->step, fault->err, fault->index);
}

static void add_collected(struct line *line, const struct report *report) {
    add(line, "\"collected\":[");
    for (size_t i = 0; i < report->collected_count; i++)
        add(line, "%s[%" PRIu64 ",%" PRIu64 ",%d]", i > 0 ? "," : "", report->collected[i].files, report->collected[i].bytes,
            report->collected[i].err);
    add(line, "]");
}

size_t report_write(const struct report *report, const struct request *request, char *text, size_t size) {
    struct line line = {.text = text, .size = size};
    uint64_t time_us = report->cpu_ns / NS_PER_US, wall_us = report->wall_ns / NS_PER_US, mem_kb = report->memory_bytes / 1024;
    add(&line, "{\"schema_version\":1,\"job_id\":\"%s\",\"attempt_id\":%" PRIu64 ",", request->job_id, request->attempt_id);
    add(&line, "\"verdict\":\"%s\",\"time_ms\":%" PRIu64 ",\"mem_kb\":%" PRIu64 ",\"exit_signal\":%d,",
        verdict_names[report->verdict], time_us / 1000, mem_kb, report->exit_signal);
    add_fault(&line, &report->fault);
    add(&line, ",\"status\":\"%s\",\"time_used\":%" PRIu64 ",\"memory_used\":%" PRIu64 ",\"exit_code\":%d,",
        status_names[report->verdict], time_us / 1000, mem_kb, report->exit_code);
    add(&line, "\"time_us\":%" PRIu64 ",\"wall_ms\":%" PRIu64 ",\"wall_us\":%" PRIu64 ",\"ended_ns\":%" PRIu64 ",", time_us,
        wall_us / 1000, wall_us, report->ended_ns);
    add(&line, "\"limit\":\"%s\",\"memory_source\":\"%s\",\"processes_refused\":%s,", limit_names[report->limit],
        source_names[report->cgroup_kind], yes_or_no(report->processes_refused));
    add(&line, "\"output_bytes\":%" PRIu64 ",\"stdout_bytes\":%" PRIu64 ",\"stderr_bytes\":%" PRIu64 ",", report->output_bytes,
        report->stdout_bytes, report->stderr_bytes);
    add(&line, "\"stdout_truncated\":%s,\"stderr_truncated\":%s,", yes_or_no(report->stdout_truncated),
        yes_or_no(report->stderr_truncated));
    add_collected(&line, report);
    add(&line, "}\n");
    return line.used;
}

size_t report_hello(const struct slot *slot, enum cgroup_kind kind, const struct fault *fault, char *text, size_t size) {
    struct line line = {.text = text, .size = size};
    add(&line, "{\"hello\":1,\"slot\":%d,\"uid\":%u,\"rootless\":%s,\"has_proc\":%s,\"memory_source\":\"%s\",", slot->number,
        slot->uid, yes_or_no(slot->rootless), yes_or_no(slot->has_proc), source_names[kind]);
    add_fault(&line, fault);
    add(&line, "}\n");
    return line.used;
}

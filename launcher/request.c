/* The request parser. It depends on nothing else in the launcher, so that it can be built and fuzzed alone. */
#include "request.h"

#include <string.h>

struct reader {
    const uint8_t *next;
    size_t left;
};

static bool take(struct reader *reader, size_t size, const uint8_t **data) {
    if (reader->left < size)
        return false;
    *data = reader->next;
    reader->next += size;
    reader->left -= size;
    return true;
}

static bool take_u16(struct reader *reader, uint16_t *value) {
    const uint8_t *d;
    if (!take(reader, 2, &d))
        return false;
    *value = (uint16_t)(d[0] | d[1] << 8);
    return true;
}

static bool take_u32(struct reader *reader, uint32_t *value) {
    const uint8_t *d;
    if (!take(reader, 4, &d))
        return false;
    *value = (uint32_t)d[0] | (uint32_t)d[1] << 8 | (uint32_t)d[2] << 16 | (uint32_t)d[3] << 24;
    return true;
}

static bool take_u64(struct reader *reader, uint64_t *value) {
    uint32_t low, high;
    if (!take_u32(reader, &low) || !take_u32(reader, &high))
        return false;
    *value = (uint64_t)high << 32 | low;
    return true;
}

/* A string up to its NUL, which must be inside the record. */
static bool take_string(struct reader *reader, const char **text) {
    const uint8_t *end = reader->left > 0 ? memchr(reader->next, '\0', reader->left) : NULL;
    const uint8_t *start;
    if (end == NULL || !take(reader, (size_t)(end - reader->next) + 1, &start))
        return false;
    *text = (const char *)start;
    return true;
}

static bool take_fd(struct reader *reader, const struct request *request, unsigned *index) {
    uint32_t value;
    if (!take_u32(reader, &value) || value >= request->fd_count)
        return false;
    *index = value;
    return true;
}

/* No component is empty, "." or "..": such a path stays below its starting directory. */
static bool components_are_safe(const char *path) {
    if (strlen(path) > REQUEST_NAME_MAX)
        return false;
    for (const char *part = path;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || length > 255 || (length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0))
            return false;
        if (part[length] == '\0')
            return true;
        part += length + 1;
    }
}

static bool is_safe_name(const char *name) { return name[0] != '/' && components_are_safe(name); }

static bool is_safe_target(const char *target) { return target[0] == '/' && components_are_safe(target + 1); }

static bool is_job_id(const char *text) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
    size_t length = strlen(text);
    return length <= REQUEST_JOB_ID_MAX && strspn(text, allowed) == length;
}

static bool parse_limits(struct reader *reader, struct request *request) {
    struct limits *l = &request->limits;
    uint64_t *const fields[LIMITS_COUNT] = {&l->cpu_ms,     &l->wall_ms,      &l->memory_bytes, &l->processes,
                                            &l->open_files, &l->file_bytes,   &l->output_bytes, &l->input_bytes,
                                            &l->work_bytes, &l->work_inodes, &l->stack_bytes};
    for (size_t i = 0; i < LIMITS_COUNT; i++)
        if (!take_u64(reader, fields[i]) || *fields[i] > (1ULL << 50))
            return false;
    request->has_limits = true;
    return l->cpu_ms > 0 && l->wall_ms > 0 && l->memory_bytes > 0 && l->processes > 0 && l->open_files > 0 &&
           l->file_bytes > 0 && l->output_bytes > 0 && l->work_bytes > 0 && l->work_inodes > 0;
}

static bool parse_string_into(struct reader *reader, const char **list, size_t *count) {
    return *count < REQUEST_STRINGS_MAX && take_string(reader, &list[*count]) && (*count)++ < REQUEST_STRINGS_MAX;
}

static bool parse_stdin(struct reader *reader, struct request *request) {
    uint32_t kind;
    if (!take_u32(reader, &kind) || kind > STDIN_PATH)
        return false;
    request->stdin_kind = (enum stdin_kind)kind;
    if (kind == STDIN_FD)
        return take_fd(reader, request, &request->stdin_fd);
    return kind != STDIN_PATH || (take_string(reader, &request->stdin_path) && request->stdin_path[0] == '/');
}

static bool parse_output(struct reader *reader, const struct request *request, enum output_kind *kind, unsigned *fd) {
    uint32_t value;
    if (!take_u32(reader, &value) || value > OUTPUT_MERGE)
        return false;
    *kind = (enum output_kind)value;
    return value != OUTPUT_FD || take_fd(reader, request, fd);
}

static bool parse_file(struct reader *reader, struct request *request, enum file_kind kind) {
    uint32_t executable;
    if (request->file_count == REQUEST_FILES_MAX)
        return false;
    struct input_file *file = &request->files[request->file_count++];
    *file = (struct input_file){.kind = kind};
    if (!take_u32(reader, &executable) || executable > 1)
        return false;
    file->executable = executable == 1;
    if (kind == FILE_COPY && !take_fd(reader, request, &file->fd_index))
        return false;
    if (kind == FILE_BIND && (!take_string(reader, &file->source) || file->source[0] != '/'))
        return false;
    if (!take_string(reader, &file->name) || !is_safe_name(file->name))
        return false;
    if (kind != FILE_INLINE)
        return true;
    file->size = reader->left;
    return take(reader, reader->left, &file->data);
}

static bool parse_mount(struct reader *reader, struct request *request) {
    uint32_t writable;
    if (request->mount_count == REQUEST_MOUNTS_MAX)
        return false;
    struct mount_entry *entry = &request->mounts[request->mount_count++];
    if (!take_u32(reader, &writable) || writable > 1)
        return false;
    entry->writable = writable == 1;
    return take_string(reader, &entry->source) && entry->source[0] == '/' && take_string(reader, &entry->target) &&
           is_safe_target(entry->target);
}

static bool parse_collect(struct reader *reader, struct request *request) {
    if (request->collect_count == REQUEST_COLLECT_MAX)
        return false;
    const char **name = &request->collect[request->collect_count++];
    return take_string(reader, name) && is_safe_name(*name);
}

static bool is_host_word(const char *text) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.:-";
    size_t length = strlen(text);
    return length > 0 && length <= 253 && strspn(text, allowed) == length;
}

static bool parse_egress(struct reader *reader, struct request *request) {
    uint32_t port;
    if (request->egress_count == REQUEST_EGRESS_MAX)
        return false;
    struct egress_entry *entry = &request->egress[request->egress_count++];
    if (!take_u32(reader, &port) || port == 0 || port > 65535)
        return false;
    entry->port = (uint16_t)port;
    return take_string(reader, &entry->address) && is_host_word(entry->address) && take_string(reader, &entry->name) &&
           is_host_word(entry->name);
}

static bool parse_record(uint16_t tag, struct reader *reader, struct request *request) {
    switch ((enum request_tag)tag) {
    case TAG_JOB_ID:
        return take_string(reader, &request->job_id) && is_job_id(request->job_id);
    case TAG_ATTEMPT_ID:
        return take_u64(reader, &request->attempt_id) && request->attempt_id <= INT64_MAX;
    case TAG_LIMITS:
        return parse_limits(reader, request);
    case TAG_ARGUMENT:
        return parse_string_into(reader, request->arguments, &request->argument_count);
    case TAG_VARIABLE:
        return parse_string_into(reader, request->variables, &request->variable_count);
    case TAG_STDIN:
        return parse_stdin(reader, request);
    case TAG_STDOUT:
        return parse_output(reader, request, &request->stdout_kind, &request->stdout_fd) &&
               request->stdout_kind != OUTPUT_MERGE;
    case TAG_STDERR:
        return parse_output(reader, request, &request->stderr_kind, &request->stderr_fd);
    case TAG_FILE_COPY:
        return parse_file(reader, request, FILE_COPY);
    case TAG_FILE_INLINE:
        return parse_file(reader, request, FILE_INLINE);
    case TAG_FILE_BIND:
        return parse_file(reader, request, FILE_BIND);
    case TAG_MOUNT:
        return parse_mount(reader, request);
    case TAG_COLLECT:
        return parse_collect(reader, request);
    case TAG_COLLECT_TO:
        request->has_collect_to = true;
        return take_fd(reader, request, &request->collect_to_fd);
    case TAG_EGRESS:
        return parse_egress(reader, request);
    }
    return false;
}

static bool is_complete(const struct request *request) {
    if (request->type != REQUEST_RUN)
        return true;
    return request->has_limits && request->argument_count > 0 && request->arguments[0][0] != '\0' &&
           (request->collect_count == 0 || request->has_collect_to);
}

static void clear(struct request *request) {
    /* The string tables are large; only the used entries are written. */
    memset(request->files, 0, sizeof request->files);
    memset(request->mounts, 0, sizeof request->mounts);
    request->type = 0;
    request->fd_count = 0;
    request->job_id = "";
    request->attempt_id = 0;
    request->limits = (struct limits){0};
    request->argument_count = request->variable_count = request->file_count = 0;
    request->mount_count = request->collect_count = request->egress_count = 0;
    request->stdin_kind = STDIN_EMPTY;
    request->stdin_fd = request->stdout_fd = request->stderr_fd = request->collect_to_fd = 0;
    request->stdin_path = NULL;
    request->stdout_kind = request->stderr_kind = OUTPUT_CAPTURE;
    request->has_collect_to = request->has_limits = false;
    request->bad_record = -1;
}

bool parse_request(const uint8_t *data, size_t size, struct request *request) {
    struct reader reader = {.next = data, .left = size};
    uint32_t magic, length;
    uint16_t type, fd_count, tag, zero;

    clear(request);
    if (!take_u32(&reader, &magic) || magic != REQUEST_MAGIC || !take_u16(&reader, &type) || !take_u16(&reader, &fd_count))
        return false;
    if (type < REQUEST_RUN || type > REQUEST_IN_FD || fd_count > REQUEST_FDS_MAX || size > REQUEST_BYTES_MAX)
        return false;
    request->type = (enum request_type)type;
    request->fd_count = fd_count;
    for (int record = 0; reader.left > 0; record++) {
        struct reader body = {0};
        request->bad_record = record;
        if (!take_u16(&reader, &tag) || !take_u16(&reader, &zero) || zero != 0 || !take_u32(&reader, &length))
            return false;
        body.left = length;
        if (!take(&reader, length, &body.next) || !parse_record(tag, &body, request) || body.left != 0)
            return false;
    }
    request->bad_record = -1;
    request->arguments[request->argument_count] = NULL;
    request->variables[request->variable_count] = NULL;
    return is_complete(request);
}

/* Coverage-guided fuzzing of the launcher's request parser (launcher/request.c).
 *
 * Sanitizers check memory safety. This file checks what the launcher relies on after a successful parse: every string
 * ends inside the message, every name stays below its directory, every descriptor index is valid, every list ends. */
#include "request.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t *message;
static size_t message_size;
static struct request request; /* large, so not on the stack, as in the launcher */

static void require(bool condition)
{
    if (!condition)
        abort();
}

static size_t text_length(const char *text)
{
    const uint8_t *start = (const uint8_t *)text;
    if (start < message || start >= message + message_size) {
        require(text[0] == '\0'); /* a constant: the empty job id */
        return 0;
    }
    const uint8_t *end = memchr(start, 0, (size_t)(message + message_size - start));
    require(end != NULL);
    return (size_t)(end - start);
}

/* Written differently from the parser: components between slashes are neither empty, "." nor "..". */
static void require_safe(const char *path)
{
    size_t length = text_length(path);
    char copy[REQUEST_NAME_MAX + 4];
    require(length > 0 && length <= REQUEST_NAME_MAX && path[0] != '/');
    copy[0] = '/';
    memcpy(copy + 1, path, length);
    copy[length + 1] = '/';
    copy[length + 2] = '\0';
    require(!strstr(copy, "//") && !strstr(copy, "/./") && !strstr(copy, "/../"));
}

static void check_files(void)
{
    for (size_t i = 0; i < request.file_count; i++) {
        const struct input_file *file = &request.files[i];
        require_safe(file->name);
        if (file->kind == FILE_COPY)
            require(file->fd_index < request.fd_count);
        if (file->kind == FILE_BIND)
            require(text_length(file->source) > 0 && file->source[0] == '/');
        if (file->kind == FILE_INLINE && file->size > 0)
            require(file->data >= message && file->data + file->size <= message + message_size);
    }
}

static void check_lists(void)
{
    require(request.argument_count <= REQUEST_STRINGS_MAX && request.arguments[request.argument_count] == NULL);
    require(request.variable_count <= REQUEST_STRINGS_MAX && request.variables[request.variable_count] == NULL);
    for (size_t i = 0; i < request.argument_count; i++)
        text_length(request.arguments[i]);
    for (size_t i = 0; i < request.variable_count; i++)
        text_length(request.variables[i]);
    for (size_t i = 0; i < request.mount_count; i++) {
        require(text_length(request.mounts[i].source) > 0 && request.mounts[i].source[0] == '/');
        require(request.mounts[i].target[0] == '/');
        require_safe(request.mounts[i].target + 1);
    }
    for (size_t i = 0; i < request.collect_count; i++)
        require_safe(request.collect[i]);
}

static void check_run(void)
{
    require(request.argument_count > 0 && request.arguments[0][0] != '\0');
    require(request.has_limits && request.limits.wall_ms > 0 && request.limits.memory_bytes > 0);
    require(text_length(request.job_id) <= REQUEST_JOB_ID_MAX && !strpbrk(request.job_id, "\"\\\n"));
    if (request.stdin_kind == STDIN_FD)
        require(request.stdin_fd < request.fd_count);
    if (request.stdin_kind == STDIN_PATH)
        require(text_length(request.stdin_path) > 0);
    if (request.stdout_kind == OUTPUT_FD)
        require(request.stdout_fd < request.fd_count);
    if (request.stderr_kind == OUTPUT_FD)
        require(request.stderr_fd < request.fd_count);
    if (request.collect_count > 0)
        require(request.has_collect_to && request.collect_to_fd < request.fd_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A heap copy of exactly this size, so that the sanitizer detects a read beyond it. */
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    message = copy;
    message_size = size;
    if (parse_request(copy, size, &request)) {
        check_files();
        check_lists();
        if (request.type == REQUEST_RUN)
            check_run();
    }
    free(copy);
    return 0;
}

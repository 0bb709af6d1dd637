/* Small file helpers and fail_at(). */
#include "box.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool fail_at(struct fault *fault, const char *step, int index) {
    if (fault->step == NULL) {
        fault->err = errno;
        fault->index = index;
        fault->step = step;
    }
    return false;
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

bool write_all(int fd, const void *data, size_t size) {
    const char *next = data;
    while (size > 0) {
        ssize_t done = write(fd, next, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        next += done;
        size -= (size_t)done;
    }
    return true;
}

ssize_t read_text(int fd, char *buffer, size_t size) {
    size_t used = 0;
    while (used + 1 < size) {
        ssize_t got = pread(fd, buffer + used, size - 1 - used, (off_t)used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    buffer[used] = '\0';
    return (ssize_t)used;
}

ssize_t read_once(int fd, char *buffer, size_t size) {
    ssize_t got = pread(fd, buffer, size - 1, 0);
    buffer[got > 0 ? got : 0] = '\0';
    return got;
}

bool put_text(int dir_fd, const char *path, const char *text) {
    int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool done = write_all(fd, text, strlen(text));
    int saved = errno;
    close(fd);
    errno = saved;
    return done;
}

bool put_number(int fd, uint64_t value) {
    char text[32];
    int size = snprintf(text, sizeof text, "%" PRIu64, value);
    return pwrite(fd, text, (size_t)size, 0) == (ssize_t)size;
}

bool get_number(int fd, uint64_t *value) {
    char text[32];
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    if (got <= 0)
        return false;
    text[got] = '\0';
    *value = strtoull(text, NULL, 10);
    return true;
}

uint64_t find_counter(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
        line = strchr(line, '\n');
        if (line != NULL)
            line++;
    }
    return 0;
}

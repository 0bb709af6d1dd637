/* Copies output. A full target pipe blocks only its own output_pipe, not the monitor. If the target is closed, our read
 * end is closed as well, so that the program gets EPIPE as it would without us. */
#include "output_pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (64 * 1024)
static char scratch[CHUNK_BYTES];

/* The program may reopen /dev/stdout, so it must own the pipe. */
bool output_pipe_create(int ends[2], const struct slot *slot) {
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && (slot->rootless || fchown(ends[0], slot->uid, slot->gid) == 0);
}

void output_pipe_set_target(struct output_pipe *pipe, int fd) {
    struct stat info;
    pipe->target_fd = fd;
    bool is_pipe = fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
    pipe->target = is_pipe ? OUTPUT_TO_PIPE : OUTPUT_TO_FILE;
}

void output_pipe_close(struct output_pipe *pipe) {
    if (pipe->read_fd >= 0)
        close(pipe->read_fd);
    pipe->read_fd = -1;
    pipe->blocked = false;
}

static size_t smaller(uint64_t left, size_t right) { return left < right ? (size_t)left : right; }

/* The limit is used up: checks whether there is more output. */
static void detect_excess_output(struct output_pipe *pipe, struct outputs *outputs) {
    ssize_t got = read(pipe->read_fd, scratch, 1);
    if (got > 0)
        outputs->over_limit = true;
    if (got == 0)
        output_pipe_close(pipe);
}

static ssize_t copy_to_buffer(struct output_pipe *pipe, size_t max_bytes) {
    size_t space = pipe->capacity - pipe->kept;
    char *where = space > 0 ? pipe->buffer + pipe->kept : scratch;
    ssize_t got = read(pipe->read_fd, where, smaller(max_bytes, space > 0 ? space : CHUNK_BYTES));
    if (got > 0 && space > 0)
        pipe->kept += (size_t)got;
    else if (got > 0)
        pipe->truncated = true;
    return got;
}

static ssize_t copy_to_file(struct output_pipe *pipe, size_t max_bytes, struct outputs *outputs) {
    ssize_t got = read(pipe->read_fd, scratch, max_bytes);
    if (got <= 0)
        return got;
    if (!write_all(pipe->target_fd, scratch, (size_t)got)) {
        if (errno == EPIPE)
            return 0;
        fail_at(&outputs->fault, "output", -1);
        return 0;
    }
    return got;
}

static ssize_t copy_to_pipe(struct output_pipe *pipe, size_t max_bytes) {
    ssize_t got = splice(pipe->read_fd, NULL, pipe->target_fd, NULL, max_bytes, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (got < 0 && errno == EPIPE)
        return 0;
    return got;
}

/* EAGAIN of splice means that the source is empty or the target is full; this tells which. */
static bool has_input(const struct output_pipe *pipe) {
    int queued = 0;
    return ioctl(pipe->read_fd, FIONREAD, &queued) == 0 && queued > 0;
}

void output_pipe_copy(struct output_pipe *pipe, struct outputs *outputs) {
    pipe->blocked = false;
    while (pipe->read_fd >= 0 && !outputs->over_limit && outputs->fault.step == NULL) {
        size_t max_bytes = smaller(outputs->limit_bytes - outputs->total_bytes, CHUNK_BYTES);
        if (max_bytes == 0) {
            detect_excess_output(pipe, outputs);
            return;
        }
        ssize_t moved = pipe->target == OUTPUT_TO_CAPTURE ? copy_to_buffer(pipe, max_bytes)
                        : pipe->target == OUTPUT_TO_FILE  ? copy_to_file(pipe, max_bytes, outputs)
                                                     : copy_to_pipe(pipe, max_bytes);
        if (moved == 0) {
            output_pipe_close(pipe);
        } else if (moved > 0) {
            outputs->total_bytes += (uint64_t)moved;
        } else if (errno == EAGAIN) {
            pipe->blocked = pipe->target == OUTPUT_TO_PIPE && has_input(pipe);
            return;
        } else if (errno != EINTR) {
            fail_at(&outputs->fault, "output", -1);
        }
    }
}

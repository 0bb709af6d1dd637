/* Moving output. A target that cannot take more (a full pipe) stops its pump, never the watcher; a target that is gone
 * closes our end, so that the program meets EPIPE as it would without us. */
#include "output_pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES (64 * 1024)
static char scratch[CHUNK_BYTES];

/* The program may open /dev/stdout anew, so the pipe must be its own. */
bool pump_pipe(int ends[2], const struct slot *slot) {
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 && (slot->rootless || fchown(ends[0], slot->uid, slot->gid) == 0);
}

void pump_set_target(struct pump *pump, int fd) {
    struct stat info;
    pump->target_fd = fd;
    pump->target = fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) ? PUMP_PIPE : PUMP_FILE;
}

void pump_close(struct pump *pump) {
    if (pump->read_fd >= 0)
        close(pump->read_fd);
    pump->read_fd = -1;
    pump->blocked = false;
}

static size_t smaller(uint64_t left, size_t right) { return left < right ? (size_t)left : right; }

/* The rest of the cap is zero: is there anything more? */
static void look_beyond(struct pump *pump, struct outputs *outputs) {
    ssize_t got = read(pump->read_fd, scratch, 1);
    if (got > 0)
        outputs->over_limit = true;
    if (got == 0)
        pump_close(pump);
}

static ssize_t move_to_buffer(struct pump *pump, size_t most) {
    size_t space = pump->capacity - pump->kept;
    char *where = space > 0 ? pump->buffer + pump->kept : scratch;
    ssize_t got = read(pump->read_fd, where, smaller(most, space > 0 ? space : CHUNK_BYTES));
    if (got > 0 && space > 0)
        pump->kept += (size_t)got;
    else if (got > 0)
        pump->truncated = true;
    return got;
}

static ssize_t move_to_file(struct pump *pump, size_t most, struct outputs *outputs) {
    ssize_t got = read(pump->read_fd, scratch, most);
    if (got <= 0)
        return got;
    if (!write_all(pump->target_fd, scratch, (size_t)got)) {
        if (errno == EPIPE)
            return 0;
        fail_at(&outputs->fault, "output", -1);
        return 0;
    }
    return got;
}

static ssize_t move_to_pipe(struct pump *pump, size_t most) {
    ssize_t got = splice(pump->read_fd, NULL, pump->target_fd, NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (got < 0 && errno == EPIPE)
        return 0;
    return got;
}

/* An EAGAIN from splice may mean "nothing to read" or "no room to write"; asked only then. */
static bool has_input(const struct pump *pump) {
    int waiting = 0;
    return ioctl(pump->read_fd, FIONREAD, &waiting) == 0 && waiting > 0;
}

void pump_move(struct pump *pump, struct outputs *outputs) {
    pump->blocked = false;
    while (pump->read_fd >= 0 && !outputs->over_limit && outputs->fault.step == NULL) {
        size_t most = smaller(outputs->limit_bytes - outputs->total_bytes, CHUNK_BYTES);
        if (most == 0) {
            look_beyond(pump, outputs);
            return;
        }
        ssize_t moved = pump->target == PUMP_CAPTURE ? move_to_buffer(pump, most)
                        : pump->target == PUMP_FILE  ? move_to_file(pump, most, outputs)
                                                     : move_to_pipe(pump, most);
        if (moved == 0) {
            pump_close(pump);
        } else if (moved > 0) {
            outputs->total_bytes += (uint64_t)moved;
        } else if (errno == EAGAIN) {
            pump->blocked = pump->target == PUMP_PIPE && has_input(pump);
            return;
        } else if (errno != EINTR) {
            fail_at(&outputs->fault, "output", -1);
        }
    }
}

/* stdout and stderr of a program: read from pipes as they come, counted against one cap, kept or passed on. */
#ifndef ADJUDGE_OUTPUT_PIPES_H
#define ADJUDGE_OUTPUT_PIPES_H

#include "box.h"

enum pump_target { PUMP_CAPTURE, PUMP_FILE, PUMP_PIPE };

struct pump {
    int read_fd;        /* our end of the program's pipe; -1 once closed */
    int target_fd;      /* borrowed */
    enum pump_target target;
    char *buffer;       /* PUMP_CAPTURE: shared with our master */
    size_t capacity, kept;
    bool truncated;
    bool blocked;       /* PUMP_PIPE: the reader over there is slow */
};

struct outputs {
    struct pump out, err;
    uint64_t limit_bytes, total_bytes;
    bool over_limit;
    struct fault fault;
};

/* Makes a program's pipe: our end, then the program's. */
bool pump_pipe(int ends[2], const struct slot *slot);
void pump_set_target(struct pump *pump, int fd);
void pump_move(struct pump *pump, struct outputs *outputs); /* what is there now */
void pump_close(struct pump *pump);

#endif

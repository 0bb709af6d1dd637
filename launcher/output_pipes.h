/* stdout and stderr of a program: read from pipes as they come, counted against one cap, kept or passed on. */
#ifndef ADJUDGE_OUTPUT_PIPES_H
#define ADJUDGE_OUTPUT_PIPES_H

#include "box.h"

enum output_target { OUTPUT_TO_CAPTURE, OUTPUT_TO_FILE, OUTPUT_TO_PIPE };

struct output_pipe {
    int read_fd;        /* our end of the program's pipe; -1 once closed */
    int target_fd;      /* borrowed */
    enum output_target target;
    char *buffer;       /* OUTPUT_TO_CAPTURE: shared with our master */
    size_t capacity, kept;
    bool truncated;
    bool blocked;       /* OUTPUT_TO_PIPE: the reader over there is slow */
};

struct outputs {
    struct output_pipe out, err;
    uint64_t limit_bytes, total_bytes;
    bool over_limit;
    struct fault fault;
};

/* Makes a program's pipe: our end, then the program's. */
bool output_pipe_create(int ends[2], const struct slot *slot);
void output_pipe_set_target(struct output_pipe *pipe, int fd);
void output_pipe_copy(struct output_pipe *pipe, struct outputs *outputs); /* what is there now */
void output_pipe_close(struct output_pipe *pipe);

#endif

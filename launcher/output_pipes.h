/* stdout and stderr of a program: read from pipes, counted against one limit, captured or forwarded. */
#ifndef ADJUDGE_OUTPUT_PIPES_H
#define ADJUDGE_OUTPUT_PIPES_H

#include "box.h"

enum output_target { OUTPUT_TO_CAPTURE, OUTPUT_TO_FILE, OUTPUT_TO_PIPE };

struct output_pipe {
    int read_fd;   /* our end of the program's pipe; -1 once closed */
    int target_fd; /* not owned */
    enum output_target target;
    char *buffer;  /* OUTPUT_TO_CAPTURE: shared with the client */
    size_t capacity, kept;
    bool truncated;
    bool blocked;  /* OUTPUT_TO_PIPE: the target is full */
};

struct outputs {
    struct output_pipe out, err;
    uint64_t limit_bytes, total_bytes;
    bool over_limit;
    struct fault fault;
};

/* Creates a pipe for the program: read end, write end. */
bool output_pipe_create(int ends[2], const struct slot *slot);
void output_pipe_set_target(struct output_pipe *pipe, int fd);
void output_pipe_copy(struct output_pipe *pipe, struct outputs *outputs); /* copies what can be read without blocking */
void output_pipe_close(struct output_pipe *pipe);

#endif

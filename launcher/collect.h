/* Copying files out of the work directory after a run, without following anything the program planted. */
#ifndef ADJUDGE_COLLECT_H
#define ADJUDGE_COLLECT_H

#include "request.h"

struct collected {
    uint64_t files, bytes;
    int err; /* 0, or why (part of) the name could not be copied */
};

void collect_all(int work_fd, int target_fd, const struct request *request, struct collected *results);

#endif

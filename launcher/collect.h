/* Copies files out of the work directory after a run. Links and special files of the program are not followed. */
#ifndef ADJUDGE_COLLECT_H
#define ADJUDGE_COLLECT_H

#include "request.h"

struct collected {
    uint64_t files, bytes;
    int err; /* 0, or the first errno: the name was copied incompletely or not at all */
};

void collect_all(int work_fd, int target_fd, const struct request *request, struct collected *results);

#endif

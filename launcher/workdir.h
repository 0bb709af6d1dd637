/* What is new for every run: the work directory, /tmp, input files and mounts. */
#ifndef ADJUDGE_WORKDIR_H
#define ADJUDGE_WORKDIR_H

#include "box.h"
#include "request.h"

struct workdir {
    int work_fd;                           /* work directory: to set timestamps, create and collect files */
    int tmp_fd;                            /* /tmp, to set its timestamps */
    int stdin_fd;                          /* open if stdin is a path; else -1 */
    int file_trees[REQUEST_FILES_MAX];     /* detached bind mounts; for private files, an open file to be copied */
    bool file_bound[REQUEST_FILES_MAX];
    int mount_trees[REQUEST_MOUNTS_MAX];
    bool mount_attached[REQUEST_MOUNTS_MAX];
    int created_depth[REQUEST_MOUNTS_MAX]; /* path components of the mount point created in the root */
    bool work_mounted, tmp_mounted;
    bool size_is_known;                    /* whether the next two fields hold for both directories */
    uint64_t size_bytes, size_inodes;
};

void workdir_init(struct workdir *workdir);
/* Mounts both directories. If they are mounted and unused, changes their size to these limits. */
bool workdir_mount(struct workdir *workdir, const struct slot *slot, const struct limits *limits, struct fault *fault);
bool workdir_prepare(struct workdir *workdir, const struct slot *slot, const struct request *request, const int *fds,
                     struct fault *fault);
/* Removes everything of the run. False: the box is not clean and must not be used again. */
bool workdir_release(struct workdir *workdir, const struct slot *slot, const struct request *request);

#endif

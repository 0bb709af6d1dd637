/* What is fresh for every run: the work directory, /tmp, its input files and its mounts. */
#ifndef ADJUDGE_WORKDIR_H
#define ADJUDGE_WORKDIR_H

#include "box.h"
#include "request.h"

struct workdir {
    int work_fd;                           /* the work directory, for dating it, placing and collecting files */
    int tmp_fd;                            /* /tmp, for dating it */
    int stdin_fd;                          /* opened here where stdin is a path; else -1 */
    int file_trees[REQUEST_FILES_MAX];     /* detached views of files that are shown; private ones, opened to be copied */
    bool file_bound[REQUEST_FILES_MAX];
    int mount_trees[REQUEST_MOUNTS_MAX];
    bool mount_attached[REQUEST_MOUNTS_MAX];
    int created_depth[REQUEST_MOUNTS_MAX];    /* how many last parts of the mount point's path we made in the root */
    bool work_mounted, tmp_mounted;
    bool size_is_known;                         /* whether the following are the caps of both */
    uint64_t size_bytes, size_inodes;
};

void workdir_init(struct workdir *workdir);
/* Mounts both directories, or gives those that nobody has used yet the caps of these limits. */
bool workdir_mount(struct workdir *workdir, const struct slot *slot, const struct limits *limits, struct fault *fault);
bool workdir_prepare(struct workdir *workdir, const struct slot *slot, const struct request *request, const int *fds,
                     struct fault *fault);
/* Nothing of the run is left to read afterwards. False: the box is not clean and must not be used again. */
bool workdir_release(struct workdir *workdir, const struct slot *slot, const struct request *request);

#endif

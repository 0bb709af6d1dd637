/* One run, from a parsed request to a clean box. */
#ifndef ADJUDGE_RUN_H
#define ADJUDGE_RUN_H

#include "cgroup.h"
#include "prefork.h"
#include "report.h"

/* What lives as long as the agent. */
struct box {
    struct slot slot;
    struct cgroup cgroup;
    int control_fd;
    int null_fd;
    bool once;     /* the command: one run, then the box goes */
    char *capture; /* shared with our master: first stdout's bytes, then stderr's */
    size_t stdout_capacity, stderr_capacity;
    struct prefork prefork;
};

enum run_result {
    RUN_CLEAN,      /* the report was sent, the box is as before */
    RUN_CLIENT_GONE,
    RUN_CLEANUP_FAILED,      /* the report was sent, but something could not be cleaned: the box must go */
};

/* fds: the descriptors that came with the request; all are closed here. */
enum run_result run_request(struct box *box, const struct request *request, int *fds);
/* Answers a request that cannot even be read. */
enum run_result run_report_fault(struct box *box, const struct request *request, const struct fault *fault);

#endif

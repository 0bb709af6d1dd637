/* One run, from a parsed request to a clean box. */
#ifndef ADJUDGE_RUN_H
#define ADJUDGE_RUN_H

#include "cgroup.h"
#include "prefork.h"
#include "report.h"

/* State that lives as long as the agent. */
struct box {
    struct slot slot;
    struct cgroup cgroup;
    int control_fd;
    int null_fd;
    bool once;     /* command mode: the box serves one run */
    char *capture; /* shared with the client: first the bytes of stdout, then those of stderr */
    size_t stdout_capacity, stderr_capacity;
    struct prefork prefork;
};

enum run_result {
    RUN_CLEAN,          /* the report was sent, and the box can be reused */
    RUN_CLIENT_GONE,    /* the client closed the control socket */
    RUN_CLEANUP_FAILED, /* the report was sent, but cleanup failed: the box must not be reused */
};

/* fds: the descriptors that came with the request; all are closed here. */
enum run_result run_request(struct box *box, const struct request *request, int *fds);
/* Sends a report with verdict SE for a request that could not be parsed. */
enum run_result run_report_fault(struct box *box, const struct request *request, const struct fault *fault);

#endif

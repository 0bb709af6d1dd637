/* Serving requests inside the box. */
#ifndef ADJUDGE_AGENT_H
#define ADJUDGE_AGENT_H

#include "run.h"

/* Reads one request and answers it. */
enum run_result serve_request(struct box *box);

/* The agent: serves until its master hangs up, or until the box cannot be cleaned. Gives the exit code. */
int agent_serve(struct box *box);
/* The command: one process per run, for when an agent cannot be had. All it does differently is to stop after one. */
int command_serve(struct box *box);

#endif

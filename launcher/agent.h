/* Serves requests inside the box. */
#ifndef ADJUDGE_AGENT_H
#define ADJUDGE_AGENT_H

#include "run.h"

/* Receives one request, runs it and sends the report. */
enum run_result serve_request(struct box *box);

/* Agent mode: serves requests until the client closes the control socket or cleanup fails. Returns the exit code. */
int agent_serve(struct box *box);
/* Command mode: serves one request and returns the exit code. It is the fallback when no agent can be started. */
int command_serve(struct box *box);

#endif

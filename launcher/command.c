/* The command: one process per run, for when an agent cannot be had. All it does differently is to stop after one. */
#include "agent.h"

int command_serve(struct box *box) { return serve_one(box) == RUN_DIRTY ? 1 : 0; }

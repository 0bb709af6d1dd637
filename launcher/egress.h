/* Opt-in network access. For each address of the request, a listener on the loopback interface of the box is passed to
 * the client, which forwards connections to the one host that it stands for. The box itself has no route outside. */
#ifndef ADJUDGE_EGRESS_H
#define ADJUDGE_EGRESS_H

#include "box.h"
#include "request.h"

/* Only for a box that serves one run: its changes are discarded with the box. */
bool egress_open(const struct slot *slot, const struct request *request, int control_fd, struct fault *fault);

#endif

/* The opt-in way out: for each address of the request a listener on the box's own loopback, handed to our master, which
 * carries bytes to the one place outside that it stands for. The box itself keeps having no network. */
#ifndef ADJUDGE_EGRESS_H
#define ADJUDGE_EGRESS_H

#include "box.h"
#include "request.h"

/* Only in a box that serves one run: what it changes goes with the box. */
bool egress_open(const struct slot *slot, const struct request *request, int control_fd, struct fault *fault);

#endif

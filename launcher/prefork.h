/* What every run needs and no request changes: made while nobody waits, after one run is cleared away and before the
 * next is asked for. The child is the next program's own process; no program is in the box while it waits. */
#ifndef ADJUDGE_PREFORK_H
#define ADJUDGE_PREFORK_H

#include "child.h"
#include "workdir.h"

struct ready {
    bool made;
    struct child child;
    struct workdir workdir;
    int out[2], err[2]; /* pipes: our end, the program's end; -1 once handed on or closed */
};

struct box;

void ready_init(struct ready *ready);
/* Makes what is not made yet. A run calls it too, in case it could not be done before. */
bool ready_make(struct box *box, bool allow_internet, struct fault *fault);
bool ready_await(struct box *box, struct fault *fault); /* until the child can take a request */
void ready_used(struct ready *ready); /* the child has had its request, or is dead: what is left of the rest goes */

#endif

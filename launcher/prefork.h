/* What every run needs and no request changes: made while nobody waits, after one run is cleared away and before the
 * next is asked for. The child is the next program's own process; no program is in the box while it waits. */
#ifndef ADJUDGE_PREFORK_H
#define ADJUDGE_PREFORK_H

#include "child.h"
#include "workdir.h"

struct prefork {
    bool is_prepared;
    struct child child;
    struct workdir workdir;
    int out[2], err[2]; /* pipes: our end, the program's end; -1 once handed on or closed */
};

struct box;

void prefork_init(struct prefork *prefork);
/* Makes what is not made yet. A run calls it too, in case it could not be done before. */
bool prefork_prepare(struct box *box, bool allow_internet, struct fault *fault);
bool prefork_wait(struct box *box, struct fault *fault); /* until the child can take a request */
void prefork_release(struct prefork *prefork); /* the child has had its request, or is dead: what is left of the rest goes */

#endif

/* What every run needs and no request changes, prepared after the previous run was cleaned up and before the next
 * request arrives. The child is the process of the next program; no other program is in the box while it waits. */
#ifndef ADJUDGE_PREFORK_H
#define ADJUDGE_PREFORK_H

#include "child.h"
#include "workdir.h"

struct prefork {
    bool is_prepared;
    struct child child;
    struct workdir workdir;
    int out[2], err[2]; /* pipes: our end, the program's end; -1 once passed on or closed */
};

struct box;

void prefork_init(struct prefork *prefork);
/* Prepares what is not prepared yet. A run calls it as well, in case the preparation in advance failed. */
bool prefork_prepare(struct box *box, bool allow_internet, struct fault *fault);
bool prefork_wait(struct box *box, struct fault *fault); /* until the child is ready for a request */
void prefork_release(struct prefork *prefork); /* the child has its request or is dead: closes the other descriptors */

#endif

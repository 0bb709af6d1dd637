/* A word on which tasks that share memory may sleep: the agent's threads, and the child that will be a program. */
#ifndef ADJUDGE_FUTEX_WORD_H
#define ADJUDGE_FUTEX_WORD_H

int sign_read(const int *word);
void sign_set(int *word, int value);         /* and wakes who waits for a change */
int sign_await_change(const int *word, int from); /* gives the new value, at once if it is there already */

#endif

/* A word on which tasks that share memory may sleep: the agent's threads, and the child that will be a program. */
#ifndef ADJUDGE_FUTEX_WORD_H
#define ADJUDGE_FUTEX_WORD_H

int futex_word_load(const int *word);
void futex_word_store(int *word, int value);         /* and wakes who waits for a change */
int futex_word_wait(const int *word, int from); /* gives the new value, at once if it is there already */

#endif

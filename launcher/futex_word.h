/* An int that tasks with shared memory wait on: the threads of the agent, and the child before exec. */
#ifndef ADJUDGE_FUTEX_WORD_H
#define ADJUDGE_FUTEX_WORD_H

int futex_word_load(const int *word);
void futex_word_store(int *word, int value);    /* wakes one waiter */
int futex_word_wait(const int *word, int from); /* waits until the value differs from `from`; returns the new value */

#endif

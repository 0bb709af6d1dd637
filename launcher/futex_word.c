/* Futexes instead of semaphores, because the kernel itself stores 0 to the word when a child ends
 * (CLONE_CHILD_CLEARTID). It wakes only waiters of a shared futex, so FUTEX_PRIVATE_FLAG must not be used. */
#include "futex_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

int futex_word_load(const int *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

void futex_word_store(int *word, int value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int futex_word_wait(const int *word, int from) {
    int value;
    while ((value = futex_word_load(word)) == from)
        syscall(SYS_futex, word, FUTEX_WAIT, from, NULL, NULL, 0);
    return value;
}

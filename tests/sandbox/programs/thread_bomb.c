/* Creates as many threads as possible, prints their number and exits. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *idle(void *unused)
{
    (void)unused;
    pause();
    return NULL;
}

int main(void)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    int made = 1;
    for (pthread_t thread; made < 100000 && pthread_create(&thread, &small, idle, NULL) == 0;)
        made++;
    printf("%d\n", made);
    fflush(stdout);
    _exit(0);
}

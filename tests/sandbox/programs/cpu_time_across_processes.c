/* Tries to hide CPU time from the limit by distributing it over "threads", "children" or "orphans". */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *spin(void *unused)
{
    (void)unused;
    for (;;)
        ;
    return NULL;
}

static void spin_ms(long limit_ms)
{
    struct timespec used;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < limit_ms);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "threads")) {
        for (int i = 0; i < 4; i++)
            pthread_create(&thread, NULL, spin, NULL);
        pause();
    }
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        pid_t child = fork();
        if (child == 0) {
            if (!strcmp(argv[1], "orphans") && fork() > 0)
                _exit(0);
            spin_ms(20);
            _exit(0);
        }
        if (child > 0) {
            struct timespec pause_time = {0, 20000000};
            nanosleep(&pause_time, NULL);
        }
    }
}

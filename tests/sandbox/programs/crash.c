/* Ends as argv[1] says: exit N | abort | segv | fpe | kill | core (abort after enabling core dumps). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY};
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "exit") && argc > 2)
        return atoi(argv[2]);
    if (!strcmp(argv[1], "core")) {
        setrlimit(RLIMIT_CORE, &most);
        getrlimit(RLIMIT_CORE, &most);
        most.rlim_cur = most.rlim_max;
        setrlimit(RLIMIT_CORE, &most);
        prctl(PR_SET_DUMPABLE, 1);
    }
    if (!strcmp(argv[1], "segv"))
        raise(SIGSEGV);
    if (!strcmp(argv[1], "fpe"))
        raise(SIGFPE);
    if (!strcmp(argv[1], "kill"))
        raise(SIGKILL);
    abort();
}

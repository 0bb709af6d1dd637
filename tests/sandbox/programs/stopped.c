/* Tries: to evade the kill by being stopped, with stopped children. */
#include <signal.h>
#include <unistd.h>

int main(void)
{
    for (int i = 0; i < 8; i++)
        if (fork() == 0)
            for (;;)
                raise(SIGSTOP);
    for (;;)
        raise(SIGSTOP);
}

/* Stops itself and its children, to test that stopped processes are killed. */
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

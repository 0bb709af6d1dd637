/* Forks endlessly in every process. */
#include <unistd.h>

int main(void)
{
    for (;;)
        fork();
}

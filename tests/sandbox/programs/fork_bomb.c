/* Tries: as many processes as it can make, each making more, for ever. */
#include <unistd.h>

int main(void)
{
    for (;;)
        fork();
}

/* Allocates and touches argv[1] MiB, then succeeds. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    size_t size = (size_t)(argc > 1 ? atol(argv[1]) : 64) << 20;
    char *block = malloc(size);
    if (!block)
        return 1;
    memset(block, 1, size);
    return block[size / 2] == 1 ? 0 : 1;
}

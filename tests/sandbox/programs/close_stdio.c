/* Closes stdin, stdout and stderr, and reuses their descriptors. */
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
    close(0);
    close(1);
    close(2);
    int first = open("/work/mine", O_CREAT | O_RDWR, 0600);
    if (first != 0 || dup(0) != 1 || dup(0) != 2)
        return 1;
    return write(1, "written to a file, not to the judge\n", 36) == 36 ? 0 : 1;
}

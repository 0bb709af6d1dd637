/* Tries to make the collector read or follow what it must not: argv[1] = a host file. */
#include "attempt.h"
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv)
{
    const char *secret = argc > 1 ? argv[1] : "/etc/passwd";
    struct sockaddr_un here = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int fd;
    signal(SIGXFSZ, SIG_IGN);
    symlink(secret, "symlink");
    symlink("/etc/passwd", "symlink_inside");
    symlink("../../../../../../../../etc/passwd", "symlink_relative");
    symlink("loop", "loop");
    symlink("/proc/self/environ", "symlink_proc");
    link("/etc/passwd", "hardlink");
    linkat(AT_FDCWD, "/proc/self/exe", AT_FDCWD, "hardlink_exe", AT_SYMLINK_FOLLOW);
    mkfifo("fifo", 0666);
    mkdir("folder", 0777);
    symlink("/etc", "etc");
    mkdir("unreadable_folder", 0);
    fd = open("unreadable", O_CREAT | O_WRONLY, 0);
    if (fd >= 0 && write(fd, "mine", 4) != 4)
        return 1;
    fd = open("sparse", O_CREAT | O_WRONLY, 0600);
    if (fd >= 0 && ftruncate(fd, 1L << 40) < 0)
        puts("sparse refused");
    fd = open("good", O_CREAT | O_WRONLY, 0600);
    if (fd < 0 || write(fd, "good", 4) != 4)
        return 1;
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0)
        bind(fd, (struct sockaddr *)&here, sizeof here);
    if (fork() == 0)
        for (;;) { /* exchanges a file and a link until it is killed */
            fd = open("race_file", O_CREAT | O_WRONLY | O_TRUNC, 0600);
            if (fd >= 0 && write(fd, "mine", 4) == 4)
                close(fd);
            rename("race_file", "race");
            symlink(secret, "race_link");
            rename("race_link", "race");
        }
    puts("created");
    return 0;
}

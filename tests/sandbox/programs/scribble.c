/* Tries to write, create, link, rename, chmod or touch files outside its directories; argv = host paths. */
#include "attempt.h"
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <utime.h>

static const char *path;

static int make(void)
{
    char name[600];
    snprintf(name, sizeof name, "%s/breach", path);
    return open(name, O_CREAT | O_WRONLY, 0666);
}
/* A path masked by /dev/null can be opened and discards all data; so does /dev/zero. */
static int write_to(int flags)
{
    struct stat seen;
    int fd = open(path, O_WRONLY | flags);
    if (fd >= 0 && fstat(fd, &seen) == 0 && S_ISCHR(seen.st_mode) && (seen.st_rdev == makedev(1, 3) || seen.st_rdev == makedev(1, 5)))
        return errno = ENXIO, -1;
    return fd;
}
static int overwrite(void) { return write_to(0); }
static int append(void) { return write_to(O_APPEND); }
static int remove_it(void) { return unlink(path); }
static int move_it(void) { return rename(path, "/work/taken"); }
static int open_up(void) { return chmod(path, 0777); }
static int own(void) { return chown(path, getuid(), getgid()); }
static int mark(void) { return utime(path, NULL); }
static int tag(void) { return setxattr(path, "user.breach", "x", 1, 0); }
static int hard_link(void) { return link(path, "/work/linked") < 0 ? -1 : open("/work/linked", O_WRONLY); }
static int out_of_work(void) { return open("/work/../breach", O_CREAT | O_WRONLY, 0666); }

static void on(const char *name)
{
    char label[600];
#define TRY(what) (path = name, snprintf(label, sizeof label, #what " %s", name), attempt(label, what))
    TRY(make); TRY(overwrite); TRY(append); TRY(remove_it); TRY(move_it); TRY(open_up); TRY(own); TRY(mark); TRY(tag);
    TRY(hard_link);
}

int main(int argc, char **argv)
{
    static const char *places[] = {"/", "/usr", "/usr/bin", "/etc", "/etc/passwd", "/bin", "/lib", "/dev", "/proc", "/sys",
        "/var", "/var/tmp", "/root", "/run", "/home", "/mnt", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
        "/proc/sys/vm/drop_caches", "/dev/null", "/dev/zero", "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/1/mem", "/sys/fs/cgroup"};
    for (int i = 1; i < argc; i++)
        on(argv[i]);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        on(places[i]);
    attempt("out_of_work", out_of_work);
    return verdict();
}

/* The reply is the same in every box: all memory is free, and no other process runs. */
#include "sysinfo.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static int listener = -1;
static struct sysinfo constant;

void sysinfo_init(void) {
    struct sysinfo now;
    if (sysinfo(&now) == 0)
        constant = (struct sysinfo){.totalram = now.totalram, .freeram = now.totalram, .procs = 1, .mem_unit = now.mem_unit};
}

void sysinfo_listen(int listener_fd) {
    if (listener >= 0)
        close(listener);
    listener = listener_fd;
}

int sysinfo_fd(void) { return listener; }

/* Returns 0, or the error for the program. Race: the process may be dead, and its pid reused. */
static int write_reply(const struct seccomp_notif *call) {
    struct sysinfo info = constant;
    struct timespec up;
    if (clock_gettime(CLOCK_BOOTTIME, &up) == 0) /* readable for every program */
        info.uptime = up.tv_sec;
    struct iovec here = {&info, sizeof info}, there = {(void *)(uintptr_t)call->data.args[0], sizeof info};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &call->id) != 0)
        return -ESRCH;
    if (process_vm_writev((pid_t)call->pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof info)
        return 0;
    return errno == EFAULT ? -EFAULT : -ENOSYS;
}

void sysinfo_reply(void) {
    struct seccomp_notif call;
    struct seccomp_notif_resp reply;
    memset(&call, 0, sizeof call);
    memset(&reply, 0, sizeof reply);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
        return; /* the caller was killed */
    reply.id = call.id;
    reply.error = write_reply(&call);
    (void)!ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Namespaces, and privileges that are dropped once per agent instead of once per run. */
#include "namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BOX_NAMESPACES (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define SECURE_BITS (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* An unprivileged user may map one uid and one gid: the user of the box is the caller under another number. */
static bool enter_user_namespace(const struct slot *slot, struct fault *fault) {
    char map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return fail_at(fault, "user_namespace", -1);
    if (!put_text(AT_FDCWD, "/proc/self/setgroups", "deny") && errno != ENOENT)
        return fail_at(fault, "user_groups", -1);
    snprintf(map, sizeof map, "%u %u 1", slot->uid, uid);
    if (!put_text(AT_FDCWD, "/proc/self/uid_map", map))
        return fail_at(fault, "user_map", -1);
    snprintf(map, sizeof map, "%u %u 1", slot->gid, gid);
    if (!put_text(AT_FDCWD, "/proc/self/gid_map", map))
        return fail_at(fault, "group_map", -1);
    /* Mounts made on the host later still propagate to our namespace, but not the other way round. */
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
        return fail_at(fault, "host_view", -1);
    return true;
}

bool namespaces_prepare(struct slot *slot, struct fault *fault) {
    if (slot->rootless && !enter_user_namespace(slot, fault))
        return false;
    slot->host_view_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return slot->host_view_fd >= 0 || fail_at(fault, "host_view", -1);
}

pid_t namespaces_fork(struct fault *fault) {
    pid_t pid = (pid_t)syscall(SYS_clone, BOX_NAMESPACES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid < 0)
        fail_at(fault, "namespaces", -1);
    return pid;
}

bool namespaces_drop_privileges(bool rootless, bool private_cgroup_view, struct fault *fault) {
    if (!rootless && setgroups(0, NULL) != 0)
        return fail_at(fault, "groups", -1);
    if (private_cgroup_view && unshare(CLONE_NEWCGROUP) != 0)
        return fail_at(fault, "cgroup_view", -1);
    if (sethostname("box", 3) != 0)
        return fail_at(fault, "host_name", -1);
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
            return fail_at(fault, "capabilities", capability);
    if (prctl(PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0) != 0)
        return fail_at(fault, "secure_bits", -1);
    /* No process in the box may trace or inspect the agent, whatever its uid is. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail_at(fault, "dumpable", -1);
    return true;
}

/* Raw system calls: the C library's set*id functions would change all threads of the agent. */
#include "privilege.h"

#include "seccomp.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* v2: the child is in its cgroup, which becomes the root of its cgroup namespace. On v1 the agent did this once. */
static bool enter_cgroup(const struct cgroup *cgroup, struct fault *fault) {
    if (!cgroup_join(cgroup))
        return fail_at(fault, "cgroup_join", -1);
    return cgroup->kind != CGROUP_V2 || unshare(CLONE_NEWCGROUP) == 0 || fail_at(fault, "cgroup_view", -1);
}

/* The agent has already dropped the supplementary groups. */
static bool switch_user(const struct slot *slot, struct fault *fault) {
    if (slot->rootless)
        return true;
    return (syscall(SYS_setresgid, slot->gid, slot->gid, slot->gid) == 0 &&
            syscall(SYS_setresuid, slot->uid, slot->uid, slot->uid) == 0) ||
           fail_at(fault, "identity", -1);
}

/* The bounding set was cleared by the agent. Clearing the inheritable set also clears the ambient set. */
static bool drop_capabilities(struct fault *fault) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};
    return (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 && syscall(SYS_capset, &header, none) == 0) ||
           fail_at(fault, "capabilities", -1);
}

bool privilege_confine(const struct cgroup *cgroup, bool allow_internet, struct fault *fault) {
    if (!enter_cgroup(cgroup, fault))
        return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail_at(fault, "no_new_privileges", -1);
    return seccomp_apply(allow_internet) || fail_at(fault, "seccomp", -1);
}

bool privilege_drop(const struct slot *slot, struct fault *fault) {
    return switch_user(slot, fault) && drop_capabilities(fault);
}

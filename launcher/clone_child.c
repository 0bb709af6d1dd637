/* clone(2), or clone3(2) if the child must start in a cgroup. Children use one static stack, so only one exists at a
 * time. */
#include "clone_child.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)
#define CLONE_FLAGS (CLONE_VM | CLONE_FILES | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));

static struct {
    void (*body)(void *);
    void *argument;
} start; /* static, because the child uses it after the call returned */

static int enter(void *unused) {
    (void)unused;
    start.body(start.argument);
    return 127;
}

static bool clone_into_own_cgroup(pid_t *pid, int *alive) {
    return clone(enter, stack + sizeof stack, CLONE_FLAGS | SIGCHLD, NULL, pid, NULL, alive) >= 0;
}

#ifdef __x86_64__

bool clone_child_into_cgroup_supported(void) { return true; }

/* The child must not return through the parent's stack frame: it calls body and exits from here. */
static long clone3_on_stack(struct clone_args *args, void (*body)(void *), void *argument) {
    long result;
    __asm__ volatile("mov %[body], %%r12\n\t"
                     "mov %[argument], %%r13\n\t"
                     "syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "mov $127, %%edi\n\t"
                     "mov %[exit_call], %%eax\n\t"
                     "syscall\n\t"
                     "hlt\n\t"
                     "1:"
                     : "=a"(result)
                     : "a"((long)SYS_clone3), "D"(args), "S"(sizeof *args), [body] "r"(body), [argument] "r"(argument),
                       [exit_call] "i"(SYS_exit_group)
                     : "rcx", "r11", "r12", "r13", "memory", "cc");
    return result;
}

static bool clone_into_cgroup(int cgroup_fd, pid_t *pid, int *alive) {
    struct clone_args args = {.flags = CLONE_FLAGS | CLONE_INTO_CGROUP,
                              .exit_signal = SIGCHLD,
                              .parent_tid = (uint64_t)(uintptr_t)pid,
                              .child_tid = (uint64_t)(uintptr_t)alive,
                              .stack = (uint64_t)(uintptr_t)stack,
                              .stack_size = sizeof stack,
                              .cgroup = (uint64_t)(unsigned)cgroup_fd};
    long result = clone3_on_stack(&args, start.body, start.argument);
    if (result < 0)
        errno = (int)-result;
    return result >= 0;
}

#else

bool clone_child_into_cgroup_supported(void) { return false; }

static bool clone_into_cgroup(int cgroup_fd, pid_t *pid, int *alive) {
    (void)cgroup_fd;
    return clone_into_own_cgroup(pid, alive);
}

#endif

bool clone_child(int cgroup_fd, pid_t *pid, int *alive, void (*body)(void *), void *argument) {
    start.body = body;
    start.argument = argument;
    return cgroup_fd >= 0 ? clone_into_cgroup(cgroup_fd, pid, alive) : clone_into_own_cgroup(pid, alive);
}

/* clone3 with CLONE_VFORK, and CLONE_VM where we know how to give the child a stack of its own. */
#include "spawn.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (128 * 1024)

void *spawn_shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

#ifdef __x86_64__

static unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));

/* The child must not return through the parent's stack frame, so it leaves from here: call, then exit. */
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

static long start(struct clone_args *args, void (*body)(void *), void *argument) {
    args->flags |= CLONE_VM;
    args->stack = (uint64_t)(uintptr_t)stack;
    args->stack_size = sizeof stack;
    return clone3_on_stack(args, body, argument);
}

#else

static long start(struct clone_args *args, void (*body)(void *), void *argument) {
    long pid = syscall(SYS_clone3, args, sizeof *args);
    if (pid == 0) {
        body(argument);
        _exit(127);
    }
    return pid;
}

#endif

pid_t spawn(int cgroup_fd, void (*body)(void *), void *argument) {
    struct clone_args args = {.flags = CLONE_VFORK, .exit_signal = SIGCHLD};
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (__u64)(unsigned)cgroup_fd;
    }
    long pid = start(&args, body, argument);
#ifdef __x86_64__
    if (pid < 0) {
        errno = (int)-pid;
        return -1;
    }
#endif
    return (pid_t)pid;
}

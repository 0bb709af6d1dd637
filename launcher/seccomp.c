/* The filter refuses what a judged program never needs and an attacker always does. Refusals are errors the program
 * can see (EPERM, or ENOSYS where a library then falls back); a foreign system-call ABI kills it, because numbers
 * would mean other calls there. Calls newer than the ones known here do not exist for the program. */
#include "seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter knows x86-64 and aarch64"
#endif

#define X32_BIT 0x40000000u
#define NEWEST_KNOWN 469u /* file_setattr; the same number on both architectures */
#define NAMESPACE_FLAGS 0x7e020080u /* CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET}, NEWNS, NEWTIME */
#define PERSONALITY_QUERY 0xffffffffu
#define PERSONALITY_NO_RANDOM 0x0040000u

/* Newer than some systems' headers. */
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#define NR_CACHESTAT 451
#define NR_STATMOUNT 457
#define NR_LISTMOUNT 458
#define NR_OPEN_TREE_ATTR 467

static const unsigned denied[] = {
    /* other processes */
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp, SYS_pidfd_getfd,
    SYS_migrate_pages, SYS_move_pages, SYS_setpriority, SYS_ioprio_set, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr,
    /* kernel features with a history of holes */
    SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup,
    SYS_io_uring_enter, SYS_io_uring_register, SYS_fanotify_init, SYS_lookup_dcookie, SYS_quotactl, SYS_quotactl_fd,
    SYS_nfsservctl, SYS_remap_file_pages, SYS_vhangup, SYS_acct, SYS_syslog,
    /* namespaces and mounts */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_mount_setattr, SYS_open_tree,
    SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, NR_STATMOUNT, NR_LISTMOUNT, NR_OPEN_TREE_ATTR,
    SYS_open_by_handle_at, SYS_name_to_handle_at, NR_CACHESTAT,
    /* the machine */
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_clock_settime,
    SYS_clock_adjtime, SYS_settimeofday, SYS_adjtimex, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_sethostname,
    SYS_setdomainname,
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_create_module,
    SYS_get_kernel_syms, SYS_query_module, SYS_getpmsg, SYS_putpmsg, SYS_afs_syscall, SYS_tuxcall, SYS_security,
    SYS_vserver,
#endif
};

/* Libraries try these and go on without: clone3 hides its flags from a filter, queues would outlive the run. */
static const unsigned missing[] = {SYS_clone3,       SYS_memfd_secret, SYS_mq_open,   SYS_mq_unlink,
                                   SYS_mq_timedsend, SYS_mq_timedreceive, SYS_mq_notify, SYS_mq_getsetattr};

#define PROGRAM_MAX 512
static struct sock_filter code[2][PROGRAM_MAX];
static struct sock_fprog programs[2];

struct builder {
    struct sock_filter *next;
};

static void emit(struct builder *b, uint16_t op, uint8_t yes, uint8_t no, uint32_t k) {
    *b->next++ = (struct sock_filter){op, yes, no, k};
}

static void load(struct builder *b, size_t offset) { emit(b, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset); }

/* The low half of an argument; every argument looked at here is 32 bits wide in the kernel. */
static void load_argument(struct builder *b, unsigned index) {
    load(b, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

static void answer(struct builder *b, uint32_t action) { emit(b, BPF_RET | BPF_K, 0, 0, action); }

static uint32_t error(int code_of) { return SECCOMP_RET_ERRNO | (uint32_t)code_of; }

static void if_equal(struct builder *b, uint32_t value, uint32_t action) {
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    answer(b, action);
}

/* Opens a block for one system call; close_block makes other calls jump over it. */
static struct sock_filter *open_block(struct builder *b, uint32_t call) {
    load(b, offsetof(struct seccomp_data, nr));
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, call);
    return b->next - 1;
}

static void close_block(struct builder *b, struct sock_filter *jump, uint32_t otherwise) {
    answer(b, otherwise);
    jump->jf = (uint8_t)(b->next - jump - 1);
}

static void check_abi(struct builder *b) {
    load(b, offsetof(struct seccomp_data, arch));
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, OUR_ARCH);
    answer(b, SECCOMP_RET_KILL_PROCESS);
    load(b, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    emit(b, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_BIT);
    answer(b, SECCOMP_RET_KILL_PROCESS);
#endif
    emit(b, BPF_JMP | BPF_JGT | BPF_K, 0, 1, NEWEST_KNOWN);
    answer(b, error(ENOSYS));
}

static void check_lists(struct builder *b) {
    for (size_t i = 0; i < sizeof denied / sizeof denied[0]; i++)
        if_equal(b, denied[i], error(EPERM));
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        if_equal(b, missing[i], error(ENOSYS));
}

static void check_namespaces(struct builder *b) {
    struct sock_filter *block = open_block(b, SYS_clone);
    load_argument(b, 0);
    emit(b, BPF_JMP | BPF_JSET | BPF_K, 0, 1, NAMESPACE_FLAGS);
    answer(b, error(EPERM));
    close_block(b, block, SECCOMP_RET_ALLOW);
}

static void check_sockets(struct builder *b, bool allow_internet) {
    struct sock_filter *block = open_block(b, SYS_socket);
    load_argument(b, 0);
    if_equal(b, AF_UNIX, SECCOMP_RET_ALLOW);
    if (allow_internet) {
        emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, AF_INET);
        load_argument(b, 1);
        emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
        if_equal(b, SOCK_STREAM, SECCOMP_RET_ALLOW);
    }
    close_block(b, block, error(EAFNOSUPPORT));
    block = open_block(b, SYS_socketpair);
    load_argument(b, 0);
    if_equal(b, AF_UNIX, SECCOMP_RET_ALLOW);
    close_block(b, block, error(EAFNOSUPPORT));
}

/* Limits and placement of others: where the program has the launcher's uid, the kernel alone would allow it. */
static void check_others(struct builder *b) {
    static const unsigned self_only[] = {SYS_prlimit64, SYS_sched_setaffinity};
    for (size_t i = 0; i < sizeof self_only / sizeof self_only[0]; i++) {
        struct sock_filter *block = open_block(b, self_only[i]);
        load_argument(b, 0);
        if_equal(b, 0, SECCOMP_RET_ALLOW);
        close_block(b, block, error(EPERM));
    }
}

static void check_mknod(struct builder *b, uint32_t call, unsigned mode_argument) {
    struct sock_filter *block = open_block(b, call);
    load_argument(b, mode_argument);
    emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, S_IFMT);
    if_equal(b, S_IFCHR, error(EPERM));
    if_equal(b, S_IFBLK, error(EPERM));
    close_block(b, block, SECCOMP_RET_ALLOW);
}

static void check_terminal(struct builder *b) {
    struct sock_filter *block = open_block(b, SYS_ioctl);
    load_argument(b, 1);
    if_equal(b, TIOCSTI, error(EPERM));
    if_equal(b, TIOCLINUX, error(EPERM));
    close_block(b, block, SECCOMP_RET_ALLOW);
}

static void check_personality(struct builder *b) {
    struct sock_filter *block = open_block(b, SYS_personality);
    load_argument(b, 0);
    if_equal(b, 0, SECCOMP_RET_ALLOW);
    if_equal(b, PERSONALITY_NO_RANDOM, SECCOMP_RET_ALLOW);
    if_equal(b, PERSONALITY_QUERY, SECCOMP_RET_ALLOW);
    close_block(b, block, error(EPERM));
}

static void build(unsigned which, bool allow_internet) {
    struct builder b = {.next = code[which]};
    check_abi(&b);
    check_lists(&b);
    check_namespaces(&b);
    check_sockets(&b, allow_internet);
    check_others(&b);
    check_mknod(&b, SYS_mknodat, 2);
#ifdef __x86_64__
    check_mknod(&b, SYS_mknod, 1);
#endif
    check_terminal(&b);
    check_personality(&b);
    answer(&b, SECCOMP_RET_ALLOW);
    programs[which] = (struct sock_fprog){.len = (unsigned short)(b.next - code[which]), .filter = code[which]};
}

void seccomp_build(void) {
    build(0, false);
    build(1, true);
}

bool seccomp_apply(bool allow_internet) {
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &programs[allow_internet ? 1 : 0]) == 0;
}

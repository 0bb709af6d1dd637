/* The filter blocks system calls that judged programs do not need and attackers do. A blocked call fails with EPERM,
 * or with ENOSYS if libraries then use a fallback. A foreign system call ABI kills the program, because there the same
 * numbers mean other calls. Calls newer than the ones known here fail with ENOSYS.
 *
 * The second purpose is to close covert channels between boxes that run at the same time. They read the same host
 * files, so every call that changes something of a file or of a host counter which another box can read is blocked, or
 * succeeds without effect if programs rely on it (docs/reference/sandbox-guarantees.md lists what remains).
 *
 * The filter is a binary search over ranges of call numbers. When a filter is installed, the kernel compiles it and
 * evaluates it for every call number, so a linear list of comparisons would add 0.2 ms to every run. */
#include "seccomp.h"

#include "sysinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#return_errno "the filter knows x86-64 and aarch64"
#endif

#define X32_BIT 0x40000000u
#define NEWEST_KNOWN 469u /* file_setattr; the same number on both architectures */
#define NAMESPACE_FLAGS 0x7e020080u /* CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET}, NEWNS, NEWTIME */
#define PERSONALITY_QUERY 0xffffffffu
#define PERSONALITY_NO_RANDOM 0x0040000u
#define IOCTL_TERMINAL 0x5400u
#define IOCTL_SOCKET 0x8900u
#define CACHE_FLAGS 0x88u /* RWF_NOWAIT, RWF_DONTCACHE */

/* Not defined by older headers. */
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY 1027
#endif
#ifndef F_GETOWNER_UIDS
#define F_GETOWNER_UIDS 17
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
    /* kernel features with a history of vulnerabilities */
    SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup,
    SYS_io_uring_enter, SYS_io_uring_register, SYS_fanotify_init, SYS_quotactl, SYS_quotactl_fd, SYS_remap_file_pages,
    SYS_vhangup, SYS_acct, SYS_syslog,
    /* namespaces and mounts */
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_mount_setattr, SYS_open_tree,
    SYS_move_mount, SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, NR_STATMOUNT, NR_LISTMOUNT, NR_OPEN_TREE_ATTR,
    SYS_open_by_handle_at, SYS_name_to_handle_at, NR_CACHESTAT,
    /* the whole host */
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_clock_settime,
    SYS_clock_adjtime, SYS_settimeofday, SYS_adjtimex, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_sethostname,
    SYS_setdomainname,
#ifdef __x86_64__
    SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs,
#endif
};

static const unsigned unimplemented[] = {
    /* Libraries have fallbacks. A filter cannot read the flags of clone3; message queues would outlive the run. */
    SYS_clone3, SYS_memfd_secret, SYS_mq_open, SYS_mq_unlink, SYS_mq_timedsend, SYS_mq_timedreceive, SYS_mq_notify,
    SYS_mq_getsetattr,
    /* Show what other boxes do with shared files: open them, load them into the page cache, fill the disk. */
    SYS_inotify_init1, SYS_mincore, SYS_statfs, SYS_fstatfs,
    /* Requests are counted for the whole host. */
    SYS_io_setup,
#ifdef __x86_64__
    SYS_inotify_init,
#endif
};

/* Succeed without effect. Locks and cached pages belong to host files, which other boxes see. Files of the box are in
 * memory, so there is nothing to sync. */
static const unsigned without_effect[] = {SYS_flock, SYS_fadvise64, SYS_sync, SYS_syncfs, SYS_fsync, SYS_fdatasync, SYS_sync_file_range};

/* Decision for a call; some depend on an argument. */
enum check {
    CHECK_ALLOW,
    CHECK_EPERM,
    CHECK_ENOSYS,
    CHECK_NO_EFFECT,
    CHECK_KILL,
    CHECK_NAMESPACES,
    CHECK_SOCKET,
    CHECK_SELF_ONLY,
    CHECK_PERSONALITY,
    CHECK_HIDDEN_MEMORY,
    CHECK_FCNTL,
    CHECK_IOCTL,
    CHECK_MADVISE,
    CHECK_CACHE_FLAGS,
    CHECK_SYSINFO,
    CHECK_COUNT
};

struct rule {
    unsigned call;
    enum check check;
};

static const struct rule inspected[] = {
    {SYS_clone, CHECK_NAMESPACES},     {SYS_socket, CHECK_SOCKET},   {SYS_socketpair, CHECK_SOCKET},
    {SYS_prlimit64, CHECK_SELF_ONLY},
    {SYS_sched_setaffinity, CHECK_SELF_ONLY}, {SYS_personality, CHECK_PERSONALITY},
    {SYS_memfd_create, CHECK_HIDDEN_MEMORY},
    {SYS_fcntl, CHECK_FCNTL},          {SYS_ioctl, CHECK_IOCTL},     {SYS_madvise, CHECK_MADVISE},
    {SYS_preadv2, CHECK_CACHE_FLAGS},  {SYS_pwritev2, CHECK_CACHE_FLAGS}, {SYS_sysinfo, CHECK_SYSINFO},
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])
#define RULES_MAX (COUNT(denied) + COUNT(unimplemented) + COUNT(without_effect) + COUNT(inspected))
#define RANGES_MAX (2 * RULES_MAX + 3)
#define PROGRAM_MAX 512
static struct rule rules[RULES_MAX];
static struct rule ranges[RANGES_MAX]; /* from this call number up to the next range */
static size_t range_count;
static struct sock_filter code[2][PROGRAM_MAX];
static struct sock_fprog programs[2];

struct builder {
    struct sock_filter *next;
    bool allow_internet, memory_counted;
    const struct sock_filter *blocks[CHECK_COUNT]; /* start of the code for each decision */
};

static void emit(struct builder *b, uint16_t op, uint8_t yes, uint8_t no, uint32_t k) {
    *b->next++ = (struct sock_filter){op, yes, no, k};
}

static void load(struct builder *b, size_t offset) { emit(b, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset); }

/* The low 32 bits of an argument. In the kernel, every argument that is checked here has 32 bits. */
static void load_argument(struct builder *b, unsigned index) {
    load(b, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

static void emit_return(struct builder *b, uint32_t action) { emit(b, BPF_RET | BPF_K, 0, 0, action); }

static uint32_t return_errno(int code_of) { return SECCOMP_RET_ERRNO | (uint32_t)code_of; }

static void if_equal(struct builder *b, uint32_t value, uint32_t action) {
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    emit_return(b, action);
}

static void if_between(struct builder *b, uint32_t first, uint32_t last, uint32_t action) {
    emit(b, BPF_JMP | BPF_JGE | BPF_K, 0, 2, first);
    emit(b, BPF_JMP | BPF_JGT | BPF_K, 1, 0, last);
    emit_return(b, action);
}

static void check_abi(struct builder *b) {
    load(b, offsetof(struct seccomp_data, arch));
    emit(b, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, OUR_ARCH);
    emit_return(b, SECCOMP_RET_KILL_PROCESS);
    load(b, offsetof(struct seccomp_data, nr));
}

static void check_namespaces(struct builder *b) {
    load_argument(b, 0);
    emit(b, BPF_JMP | BPF_JSET | BPF_K, 0, 1, NAMESPACE_FLAGS);
    emit_return(b, return_errno(EPERM));
    emit_return(b, SECCOMP_RET_ALLOW);
}

static void check_socket(struct builder *b) {
    load_argument(b, 0);
    if_equal(b, AF_UNIX, SECCOMP_RET_ALLOW);
    if (b->allow_internet) {
        emit(b, BPF_JMP | BPF_JEQ | BPF_K, 0, 4, AF_INET);
        load_argument(b, 1);
        emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
        if_equal(b, SOCK_STREAM, SECCOMP_RET_ALLOW);
    }
    emit_return(b, return_errno(EAFNOSUPPORT));
}

/* Limits and CPU affinity of other processes: if the program has the uid of the launcher, the kernel would allow it. */
static void check_self_only(struct builder *b) {
    load_argument(b, 0);
    if_equal(b, 0, SECCOMP_RET_ALLOW);
    emit_return(b, return_errno(EPERM));
}

static void check_personality(struct builder *b) {
    load_argument(b, 0);
    if_equal(b, 0, SECCOMP_RET_ALLOW);
    if_equal(b, PERSONALITY_NO_RANDOM, SECCOMP_RET_ALLOW);
    if_equal(b, PERSONALITY_QUERY, SECCOMP_RET_ALLOW);
    emit_return(b, return_errno(EPERM));
}

/* Memory files that are not mapped are attributed to no process, so without a cgroup they would not be counted. */
static void check_hidden_memory(struct builder *b) { emit_return(b, b->memory_counted ? SECCOMP_RET_ALLOW : return_errno(ENOSYS)); }

/* Descriptor flags, owners, pipe sizes and seals are allowed. Setting a lock succeeds without effect. Querying locks,
 * leases, directory notifications and write hints fail with EINVAL. */
static void check_fcntl(struct builder *b) {
    load_argument(b, 1);
    if_between(b, 0, F_SETFL, SECCOMP_RET_ALLOW);
    if_between(b, F_SETLK, F_SETLKW, return_errno(0));
    if_between(b, F_SETOWN, F_GETOWNER_UIDS, SECCOMP_RET_ALLOW);
    if_between(b, F_OFD_SETLK, F_OFD_SETLKW, return_errno(0));
    if_equal(b, F_DUPFD_QUERY, SECCOMP_RET_ALLOW);
    if_between(b, F_DUPFD_CLOEXEC, F_GET_SEALS, SECCOMP_RET_ALLOW);
    emit_return(b, return_errno(EINVAL));
}

/* Terminals, pipes and sockets. Other requests belong to file systems and devices and show host counters. */
static void check_ioctl(struct builder *b) {
    load_argument(b, 1);
    emit(b, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xff00);
    if_equal(b, IOCTL_TERMINAL, SECCOMP_RET_ALLOW);
    if_equal(b, IOCTL_SOCKET, SECCOMP_RET_ALLOW);
    emit_return(b, return_errno(ENOTTY));
}

/* Paging out is blocked, because the pages of a file may be in use by another box. */
static void check_madvise(struct builder *b) {
    load_argument(b, 2);
    if_between(b, MADV_COLD, MADV_PAGEOUT, return_errno(EINVAL));
    emit_return(b, SECCOMP_RET_ALLOW);
}

/* RWF_NOWAIT shows what other boxes have read; RWF_DONTCACHE changes what other boxes see in the page cache. */
static void check_cache_flags(struct builder *b) {
    load_argument(b, 5);
    emit(b, BPF_JMP | BPF_JSET | BPF_K, 0, 1, CACHE_FLAGS);
    emit_return(b, return_errno(EOPNOTSUPP));
    emit_return(b, SECCOMP_RET_ALLOW);
}

static void emit_check(struct builder *b, enum check check) {
    switch (check) {
    case CHECK_ALLOW: emit_return(b, SECCOMP_RET_ALLOW); break;
    case CHECK_KILL: emit_return(b, SECCOMP_RET_KILL_PROCESS); break;
    case CHECK_COUNT: break;
    case CHECK_EPERM: emit_return(b, return_errno(EPERM)); break;
    case CHECK_ENOSYS: emit_return(b, return_errno(ENOSYS)); break;
    case CHECK_NO_EFFECT: emit_return(b, return_errno(0)); break;
    case CHECK_NAMESPACES: check_namespaces(b); break;
    case CHECK_SOCKET: check_socket(b); break;
    case CHECK_SELF_ONLY: check_self_only(b); break;
    case CHECK_PERSONALITY: check_personality(b); break;
    case CHECK_HIDDEN_MEMORY: check_hidden_memory(b); break;
    case CHECK_FCNTL: check_fcntl(b); break;
    case CHECK_IOCTL: check_ioctl(b); break;
    case CHECK_MADVISE: check_madvise(b); break;
    case CHECK_CACHE_FLAGS: check_cache_flags(b); break;
    case CHECK_SYSINFO: emit_return(b, SECCOMP_RET_USER_NOTIF); break; /* the agent replies (sysinfo.c) */
    }
}

/* A jump offset has eight bits. With too many rules, the launcher must not start. */
static uint8_t distance(const struct sock_filter *from, const struct sock_filter *to) {
    if (to - from - 1 > UINT8_MAX)
        abort();
    return (uint8_t)(to - from - 1);
}

/* One comparison per inner node of the search tree; a leaf is a jump to its decision. */
static void search(struct builder *b, const struct rule *first, size_t count) {
    size_t half = count / 2;
    struct sock_filter *node = b->next;
    emit(b, BPF_JMP | BPF_JGE | BPF_K, 0, 0, first[half].call);
    if (half == 1)
        node->jf = distance(node, b->blocks[first[0].check]);
    else
        search(b, first, half);
    if (count - half == 1) {
        node->jt = distance(node, b->blocks[first[half].check]);
    } else {
        node->jt = distance(node, b->next);
        search(b, first + half, count - half);
    }
}

static int by_call(const void *left, const void *right) {
    unsigned a = ((const struct rule *)left)->call, b = ((const struct rule *)right)->call;
    return a < b ? -1 : a > b;
}

static void sort_rules(void) {
    size_t used = 0;
    for (size_t i = 0; i < COUNT(denied); i++)
        rules[used++] = (struct rule){denied[i], CHECK_EPERM};
    for (size_t i = 0; i < COUNT(unimplemented); i++)
        rules[used++] = (struct rule){unimplemented[i], CHECK_ENOSYS};
    for (size_t i = 0; i < COUNT(without_effect); i++)
        rules[used++] = (struct rule){without_effect[i], CHECK_NO_EFFECT};
    for (size_t i = 0; i < COUNT(inspected); i++)
        rules[used++] = inspected[i];
    qsort(rules, used, sizeof rules[0], by_call);
}

static void add_range(unsigned from, enum check check) {
    if (range_count > 0 && ranges[range_count - 1].check == check && check <= CHECK_KILL)
        return;
    ranges[range_count++] = (struct rule){from, check};
}

static void make_ranges(void) {
    unsigned next = 0;
    for (size_t i = 0; i < RULES_MAX; i++) {
        if (rules[i].call > next)
            add_range(next, CHECK_ALLOW);
        add_range(rules[i].call, rules[i].check);
        next = rules[i].call + 1;
    }
    add_range(next, CHECK_ALLOW);
    add_range(NEWEST_KNOWN + 1, CHECK_ENOSYS);
#ifdef __x86_64__
    add_range(X32_BIT, CHECK_KILL);
#endif
}

/* Jump targets must be known, so the decisions are written first, behind space for the search. */
static void build(unsigned which, bool allow_internet, bool memory_counted) {
    struct builder b = {.next = code[which], .allow_internet = allow_internet, .memory_counted = memory_counted};
    check_abi(&b);
    struct sock_filter *start = b.next;
    b.next += range_count - 1;
    for (int check = CHECK_ALLOW; check < CHECK_COUNT; check++) {
        b.blocks[check] = b.next;
        emit_check(&b, (enum check)check);
    }
    programs[which] = (struct sock_fprog){.len = (unsigned short)(b.next - code[which]), .filter = code[which]};
    b.next = start;
    search(&b, ranges, range_count);
}

void seccomp_build(bool memory_counted) {
    sort_rules();
    make_ranges();
    build(0, false, memory_counted);
    build(1, true, memory_counted);
}

/* An old kernel, or a container with its own listener, provides no listener. Then sysinfo fails with ENOSYS. */
bool seccomp_apply(bool allow_internet) {
    const struct sock_fprog *program = &programs[allow_internet ? 1 : 0];
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, program);
    sysinfo_listen((int)listener);
    return listener >= 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0;
}

/* Tries every system call that leads out of the sandbox or into the kernel: tracing, keys, bpf, namespaces, mounts,
 * modules … */
#include "attempt.h"
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <linux/reboot.h>
#include <sys/resource.h>
#include <sys/swap.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <time.h>

#define CALL(...) (int)syscall(__VA_ARGS__)

static int trace_init(void) { return CALL(SYS_ptrace, PTRACE_SEIZE, 1, 0, 0); }
static int trace_parent(void) { return CALL(SYS_ptrace, PTRACE_ATTACH, getppid(), 0, 0); }
static int trace_me(void) { return CALL(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); }

static int vm_move(long number, pid_t pid)
{
    static char mine[16];
    struct iovec local = {mine, sizeof mine}, remote = {mine, sizeof mine};
    return CALL(number, pid, &local, 1UL, &remote, 1UL, 0UL);
}
static int vm_read_init(void) { return vm_move(SYS_process_vm_readv, 1); }
static int vm_read_parent(void) { return vm_move(SYS_process_vm_readv, getppid()); }
static int vm_write_parent(void) { return vm_move(SYS_process_vm_writev, getppid()); }

static int key_add(void) { return CALL(SYS_add_key, "user", "canary", "x", 1UL, KEY_SPEC_SESSION_KEYRING); }
static int key_ring(void) { return CALL(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1); }
static int key_request(void) { return CALL(SYS_request_key, "user", "canary", "x", KEY_SPEC_SESSION_KEYRING); }

static int bpf_map(void)
{
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return CALL(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map);
}

static int perf_event(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_CPU_CLOCK,
        .exclude_kernel = 1, .exclude_hv = 1};
    return CALL(SYS_perf_event_open, &event, 0, -1, -1, 0UL);
}

static int userfault_fd(void) { return CALL(SYS_userfaultfd, O_CLOEXEC | 1); }

static int io_uring(void)
{
    struct io_uring_params asked = {0};
    return CALL(SYS_io_uring_setup, 4, &asked);
}

static int new_user(void) { return CALL(SYS_unshare, CLONE_NEWUSER); }
static int new_mount(void) { return CALL(SYS_unshare, CLONE_NEWNS); }
static int new_network(void) { return CALL(SYS_unshare, CLONE_NEWNET); }
static int new_pid(void) { return CALL(SYS_unshare, CLONE_NEWPID); }
static int clone_user(void)
{
    int child = CALL(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(0);
    return child;
}
static int clone3_user(void)
{
    uint64_t asked[8] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
    int child = CALL(SYS_clone3, asked, sizeof asked);
    if (child == 0)
        _exit(0);
    return child;
}

static int join(const char *path)
{
    int fd = open(path, O_RDONLY);
    return fd < 0 ? -1 : CALL(SYS_setns, fd, 0);
}
static int join_init_mount(void) { return join("/proc/1/ns/mnt"); }
static int join_init_net(void) { return join("/proc/1/ns/net"); }
static int join_init_user(void) { return join("/proc/1/ns/user"); }
static int join_own_ipc(void) { return join("/proc/self/ns/ipc"); }

static int mount_tmpfs(void) { return CALL(SYS_mount, "none", "/tmp", "tmpfs", 0UL, 0); }
static int mount_proc(void) { return CALL(SYS_mount, "proc", "/tmp", "proc", 0UL, 0); }
static int mount_bind(void) { return CALL(SYS_mount, "/", "/tmp", "", (unsigned long)MS_BIND, 0); }
static int remount_root(void) { return CALL(SYS_mount, "none", "/", "", (unsigned long)(MS_REMOUNT | MS_BIND), 0); }
static int unmount_work(void) { return CALL(SYS_umount2, "/work", MNT_DETACH); }
static int unmount_root(void) { return CALL(SYS_umount2, "/", MNT_DETACH); }
static int pivot(void) { return CALL(SYS_pivot_root, ".", "."); }
static int open_fs(void) { return CALL(SYS_fsopen, "tmpfs", 0); }
static int clone_tree(void) { return CALL(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */); }
static int set_mount(void)
{
    uint64_t change[4] = {0, 1 /* MOUNT_ATTR_RDONLY */, 0, 0};
    return CALL(SYS_mount_setattr, AT_FDCWD, "/", 0, change, sizeof change);
}

static int chroot_out(void)
{
    struct stat top, here;
    if (mkdir("/work/jail", 0755) && errno != EEXIST)
        return -1;
    int outside = open("/", O_RDONLY | O_DIRECTORY);
    if (CALL(SYS_chroot, "/work/jail") < 0 || fchdir(outside) < 0)
        return -1;
    for (int i = 0; i < 64; i++)
        if (chdir(".."))
            return -1;
    return CALL(SYS_chroot, ".") < 0 || stat("/", &top) || stat(".", &here) ? -1 : 0;
}

/* A chroot has a directory above it, which is reachable with a descriptor from outside. */
static int above_root(void)
{
    struct stat top, above;
    int here = open("/", O_PATH | O_DIRECTORY);
    for (int i = 0; i < 64; i++)
        here = openat(here, "..", O_PATH | O_DIRECTORY);
    errno = ENOENT;
    return stat("/", &top) == 0 && fstat(here, &above) == 0 && top.st_dev == above.st_dev && top.st_ino == above.st_ino ? -1 : 0;
}
static int deferred_umounts(void) { return open("/deferred_umount", O_PATH); }
static int deferred_umounts_above_root(void) { return open("/proc/self/root/../deferred_umount", O_PATH); }
static int root_of_init(void) { return open("/proc/1/root", O_PATH | O_DIRECTORY); }

static int by_handle(void)
{
    struct { struct file_handle head; unsigned char bytes[128]; } handle = {0};
    int mount_id;
    handle.head.handle_bytes = sizeof handle.bytes;
    if (name_to_handle_at(AT_FDCWD, "/usr", &handle.head, &mount_id, 0) < 0) {
        /* A handle can be guessed: inode 2 is the root of an ext file system. */
        handle.head.handle_bytes = 8;
        handle.head.handle_type = 1;
        handle.bytes[0] = 2;
    }
    int fd = open("/usr", O_RDONLY | O_DIRECTORY);
    return CALL(SYS_open_by_handle_at, fd, &handle.head, O_RDONLY);
}

static int load_module(void) { return CALL(SYS_init_module, "", 0UL, ""); }
static int load_module_file(void) { return CALL(SYS_finit_module, 0, "", 0); }
static int drop_module(void) { return CALL(SYS_delete_module, "loop", O_NONBLOCK); }

static int node(const char *path, mode_t kind, unsigned major_number, unsigned minor_number)
{
    if (mknod(path, kind | 0666, (dev_t)(major_number << 8 | minor_number)) < 0)
        return -1;
    return open(path, O_RDONLY);
}
static int node_mem(void) { return node("/work/mem", S_IFCHR, 1, 1); }
static int node_disk(void) { return node("/work/disk", S_IFBLK, 254, 0); }
static int node_sda(void) { return node("/tmp/sda", S_IFBLK, 8, 0); }
static int dev_mem(void) { return open("/dev/mem", O_RDONLY); }
static int dev_kmem(void) { return open("/dev/kmem", O_RDONLY); }
static int dev_port(void) { return open("/dev/port", O_RDONLY); }
static int dev_kmsg(void) { return open("/dev/kmsg", O_RDONLY); }
static int dev_disk(void) { return open("/dev/vda", O_RDONLY); }
static int dev_kvm(void) { return open("/dev/kvm", O_RDWR); }
static int dev_fuse(void) { return open("/dev/fuse", O_RDWR); }

static int set_time(void)
{
    struct timespec at = {1, 0};
    return CALL(SYS_clock_settime, CLOCK_REALTIME, &at);
}
static int set_time_of_day(void)
{
    struct timeval at = {1, 0};
    return CALL(SYS_settimeofday, &at, 0);
}
static int skew_time(void)
{
    struct timex skew = {.modes = ADJ_FREQUENCY, .freq = 1 << 16};
    return CALL(SYS_adjtimex, &skew);
}
static int host_name(void) { return CALL(SYS_sethostname, "breached", 8UL); }
static int reboot_call(void) { return CALL(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF, 0); }
static int kexec(void) { return CALL(SYS_kexec_load, 0UL, 0UL, 0, 0UL); }
static int swap_on(void) { return CALL(SYS_swapon, "/work/swap", 0); }
static int swap_off(void) { return CALL(SYS_swapoff, "/work/swap"); }
static int account(void) { return CALL(SYS_acct, "/work/acct"); }
static int kernel_log(void)
{
    static char log[4096];
    return CALL(SYS_syslog, 3, log, (int)sizeof log);
}
static int io_privilege_level(void) { return CALL(SYS_iopl, 3); }
static int io_port_permission(void) { return CALL(SYS_ioperm, 0x70UL, 2UL, 1); }
static int quota(void) { return CALL(SYS_quotactl, 0x800001 << 8, "/dev/vda", 0, 0); }
static int fanotify(void) { return CALL(SYS_fanotify_init, 0, O_RDONLY); }
static int steal_descriptor(void)
{
    int pid = CALL(SYS_pidfd_open, getppid() == 1 ? 1 : getppid(), 0);
    return pid < 0 ? -1 : CALL(SYS_pidfd_getfd, pid, 0, 0);
}
static int compare_descriptors(void) { return CALL(SYS_kcmp, getpid(), 1, 0 /* KCMP_FILE */, 0UL, 0UL); }

static int become_root(void) { return CALL(SYS_setuid, 0); }
static int become_root_group(void) { return CALL(SYS_setgid, 0); }
static int become_user_of_next_slot(void) { return CALL(SYS_setresuid, getuid() + 1, getuid() + 1, getuid() + 1); }
static int join_groups(void)
{
    gid_t group = 0;
    return CALL(SYS_setgroups, 1, &group);
}
static int take_capabilities(void)
{
    uint32_t head[2] = {0x20080522, 0}, data[6] = {0xffffffff, 0xffffffff, 0, 0x1ff, 0x1ff, 0};
    return CALL(SYS_capset, head, data);
}
static int real_time(void)
{
    struct sched_param most = {1};
    return CALL(SYS_sched_setscheduler, 0, SCHED_FIFO, &most);
}
static int raise_priority(void) { return setpriority(PRIO_PROCESS, 0, -5); }
static int raise_open_files_limit(void)
{
    struct rlimit most = {RLIM_INFINITY, RLIM_INFINITY}, had;
    getrlimit(RLIMIT_NOFILE, &had);
    most.rlim_cur = most.rlim_max = had.rlim_max + 1;
    return setrlimit(RLIMIT_NOFILE, &most);
}
static int clear_no_new_privs(void) { return prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0); }

/* What one sandbox could change or read of files and counters that all sandboxes share. */
static int shared(void) { return open("/usr/bin/env", O_RDONLY); }
static int query_lock(void)
{
    struct flock lock = {.l_type = F_WRLCK};
    return fcntl(shared(), F_GETLK, &lock);
}
static int take_lease(void) { return fcntl(shared(), 1024 /* F_SETLEASE */, F_RDLCK); }
static int query_lease(void) { return fcntl(shared(), 1025 /* F_GETLEASE */); }
static int watch_directory(void) { return fcntl(open("/usr/bin", O_RDONLY), 1026 /* F_NOTIFY */, 1 /* DN_ACCESS */); }
static int read_hint(void)
{
    uint64_t hint;
    return fcntl(shared(), 1035 /* F_GET_RW_HINT */, &hint);
}
static int watch_files(void) { return CALL(SYS_inotify_init1, 0); }
static int page_out(void)
{
    void *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE, shared(), 0);
    return page == MAP_FAILED ? -1 : madvise(page, 4096, 21 /* MADV_PAGEOUT */);
}
static int read_uncached(void)
{
    char byte;
    struct iovec into = {&byte, 1};
    return CALL(SYS_preadv2, shared(), &into, 1UL, 0UL, 0UL, 0x80 /* RWF_DONTCACHE */);
}
static int create_aio_context(void)
{
    unsigned long context = 0;
    return CALL(SYS_io_setup, 1024, &context);
}
static int read_entropy_count(void)
{
    int bits;
    return ioctl(open("/dev/urandom", O_RDONLY), 0x80045200 /* RNDGETENTCNT */, &bits);
}
static int read_file_flags(void)
{
    long flags;
    return ioctl(shared(), 0x80086601 /* FS_IOC_GETFLAGS */, &flags);
}

/* Other system call ABIs of the same kernel: numbers mean other calls there, so the filter must block them. */
#ifdef __x86_64__
static int abi_i386(void)
{
    long answer;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20L /* getpid */) : "memory", "cc", "r8", "r9", "r10", "r11");
    return answer > 0 ? 0 : -1;
}
static int abi_x32(void) { return CALL(0x40000000 | SYS_getpid); }
#endif

int main(void)
{
#ifdef __x86_64__
    attempt("abi_i386", abi_i386);
    attempt("abi_x32", abi_x32);
#endif
#define TRY(name) attempt(#name, name)
    TRY(trace_init); TRY(trace_parent); TRY(trace_me);
    TRY(vm_read_init); TRY(vm_read_parent); TRY(vm_write_parent);
    TRY(key_add); TRY(key_ring); TRY(key_request);
    TRY(bpf_map); TRY(perf_event); TRY(userfault_fd); TRY(io_uring);
    TRY(new_user); TRY(new_mount); TRY(new_network); TRY(new_pid); TRY(clone_user); TRY(clone3_user);
    TRY(join_init_mount); TRY(join_init_net); TRY(join_init_user); TRY(join_own_ipc);
    TRY(mount_tmpfs); TRY(mount_proc); TRY(mount_bind); TRY(remount_root); TRY(unmount_work); TRY(unmount_root);
    TRY(pivot); TRY(open_fs); TRY(clone_tree); TRY(set_mount);
    TRY(chroot_out); TRY(above_root); TRY(deferred_umounts); TRY(deferred_umounts_above_root);
    TRY(root_of_init); TRY(by_handle);
    TRY(load_module); TRY(load_module_file); TRY(drop_module);
    TRY(node_mem); TRY(node_disk); TRY(node_sda);
    TRY(dev_mem); TRY(dev_kmem); TRY(dev_port); TRY(dev_kmsg); TRY(dev_disk); TRY(dev_kvm); TRY(dev_fuse);
    TRY(set_time); TRY(set_time_of_day); TRY(skew_time); TRY(host_name); TRY(reboot_call); TRY(kexec);
    TRY(swap_on); TRY(swap_off); TRY(account); TRY(kernel_log); TRY(io_privilege_level);
    TRY(io_port_permission); TRY(quota); TRY(fanotify);
    TRY(steal_descriptor); TRY(compare_descriptors);
    TRY(query_lock); TRY(take_lease); TRY(query_lease); TRY(watch_directory); TRY(read_hint); TRY(watch_files);
    TRY(page_out); TRY(read_uncached); TRY(create_aio_context); TRY(read_entropy_count); TRY(read_file_flags);
    TRY(become_root); TRY(become_root_group); TRY(become_user_of_next_slot); TRY(join_groups); TRY(take_capabilities);
    TRY(real_time); TRY(raise_priority); TRY(raise_open_files_limit); TRY(clear_no_new_privs);
    return verdict();
}

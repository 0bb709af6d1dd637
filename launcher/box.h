/* Declarations shared by all parts of the launcher: fault record, slot, small file helpers. */
#ifndef ADJUDGE_BOX_H
#define ADJUDGE_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOX_ROOT "/box" /* root directory of the program, as the agent sees it; the next two are paths inside it */
#define BOX_WORK "/work"
#define BOX_TMP "/tmp"
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL

/* A failure of the launcher itself: step, errno, and the index in a list (-1: no list). step == NULL: no fault. */
struct fault {
    const char *step;
    int err;
    int index;
};

/* Identity of a slot and what the launcher could set up for it. Filled once, before the first run. */
struct slot {
    int number;
    uid_t uid;
    gid_t gid;
    bool rootless;    /* unprivileged caller, in a user namespace: the program has the caller's uid there */
    bool has_proc;    /* a /proc for the pid namespace of the box could be mounted */
    int host_view_fd; /* mount namespace in which host paths are resolved */
    int box_view_fd;  /* mount namespace of the box */
    int root_rw_fd;   /* root of the box, writable for the agent only: used to create mount points for one run */
    int proc_rw_fd;   /* /proc of the box, writable for the agent only */
};

/* Records only the first failure, because later ones are consequences of it. Returns false, for use in a return. */
bool fail_at(struct fault *fault, const char *step, int index);

uint64_t now_ns(void);
bool write_all(int fd, const void *data, size_t size);
ssize_t read_text(int fd, char *buffer, size_t size); /* reads a whole small file from offset 0, NUL-terminated */
ssize_t read_once(int fd, char *buffer, size_t size); /* the same with one read, which is enough for kernel files */
bool put_text(int dir_fd, const char *path, const char *text);
bool put_number(int fd, uint64_t value); /* to an open kernel file */
bool get_number(int fd, uint64_t *value); /* from an open kernel file */
uint64_t find_counter(const char *text, const char *name); /* finds a line "name value"; 0 if absent */

#endif

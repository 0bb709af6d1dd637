/* What every part of the launcher shares: the place a failure is put in, the identity of a slot, small file helpers. */
#ifndef ADJUDGE_BOX_H
#define ADJUDGE_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOX_ROOT "/box" /* the program's root, as the agent sees it; below are the program's own paths */
#define BOX_WORK "/work"
#define BOX_TMP "/tmp"
#define NS_PER_MS 1000000ULL
#define NS_PER_US 1000ULL

/* Our fault: which step failed, with which errno, at which entry of a list (-1: no list). step == NULL: none. */
struct fault {
    const char *step;
    int err;
    int index;
};

/* Who the programs of a slot are, and what the launcher could set up for them. Filled once, before the first run. */
struct slot {
    int number;
    uid_t uid;
    gid_t gid;
    bool rootless;    /* we are an ordinary user in a user namespace: the program has our uid there */
    bool has_proc;    /* /proc of the box's own pid namespace could be mounted */
    int host_view_fd; /* mount namespace in which paths of the host mean what they say */
    int box_view_fd;  /* mount namespace of the programs */
    int root_rw_fd;   /* the box's root, writable for us alone: mount points of one run are made through it */
    int proc_rw_fd;   /* the box's /proc, writable for us alone */
};

/* Records a failure once (the first one is the cause) and gives false, so that callers can return it. */
bool fail_at(struct fault *fault, const char *step, int index);

uint64_t now_ns(void);
bool write_all(int fd, const void *data, size_t size);
ssize_t read_text(int fd, char *buffer, size_t size); /* whole small file from offset 0, NUL-terminated */
ssize_t read_once(int fd, char *buffer, size_t size); /* the same for kernel files, which give all at once */
bool put_text(int dir_fd, const char *path, const char *text);
bool put_number(int fd, uint64_t value);   /* to an open kernel file */
bool get_number(int fd, uint64_t *value);  /* from an open kernel file */
uint64_t find_counter(const char *text, const char *name); /* "name value" lines; 0 when absent */

#endif

/* The request loop of the agent: receives a packet with descriptors, sends a line of JSON. */
#include "agent.h"

#include "deferred_umount.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_MS 3

static uint8_t packet[REQUEST_PACKET_MAX];
static uint8_t body[REQUEST_BYTES_MAX];
static struct request request;

struct message {
    const uint8_t *data;
    size_t size;
    int fds[REQUEST_FDS_MAX];
    unsigned fd_count;
};

static void keep_fds(struct msghdr *header, struct message *message) {
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && message->fd_count < REQUEST_FDS_MAX; i++)
            memcpy(&message->fds[message->fd_count++], CMSG_DATA(part) + i * sizeof(int), sizeof(int));
    }
}

static void drop_fds(struct message *message) {
    while (message->fd_count > 0)
        close(message->fds[--message->fd_count]);
}

/* False if the client closed the socket. A truncated packet gets size 0, which the parser rejects. */
static bool receive(int control_fd, struct message *message) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(REQUEST_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = packet, .iov_len = sizeof packet};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    ssize_t size;
    do
        size = recvmsg(control_fd, &header, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    if (size <= 0)
        return false;
    message->data = packet;
    message->fd_count = 0;
    message->size = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ? 0 : (size_t)size;
    keep_fds(&header, message);
    return true;
}

/* A request that is too long for a packet is in the first descriptor. */
static bool read_request_from_fd(struct message *message) {
    size_t used = 0;
    ssize_t got = 0;
    if (message->fd_count == 0)
        return false;
    while (used < sizeof body && (got = pread(message->fds[0], body + used, sizeof body - used, (off_t)used)) > 0)
        used += (size_t)got;
    close(message->fds[0]);
    message->fd_count--;
    memmove(message->fds, message->fds + 1, message->fd_count * sizeof(int));
    message->data = body;
    message->size = used;
    return got == 0;
}

static bool read_message(struct message *message) {
    bool fine = parse_request(message->data, message->size, &request);
    if (fine && request.type == REQUEST_IN_FD)
        fine = read_request_from_fd(message) && parse_request(message->data, message->size, &request) &&
               request.type != REQUEST_IN_FD;
    return fine && request.fd_count == message->fd_count;
}

/* Unmounts what past runs left if no request arrives within IDLE_MS. */
static bool flush_umounts_when_idle(int control_fd) {
    struct pollfd control = {.fd = control_fd, .events = POLLIN};
    return deferred_umount_is_empty() || poll(&control, 1, IDLE_MS) != 0 || deferred_umount_flush();
}

enum run_result serve_request(struct box *box) {
    struct message message;
    if (!flush_umounts_when_idle(box->control_fd))
        return RUN_CLEANUP_FAILED;
    if (!receive(box->control_fd, &message))
        return RUN_CLIENT_GONE;
    if (!read_message(&message)) {
        struct fault fault = {.step = "request", .err = EINVAL, .index = request.bad_record};
        drop_fds(&message);
        return run_report_fault(box, &request, &fault);
    }
    if (request.type == REQUEST_RUN)
        return run_request(box, &request, message.fds);
    drop_fds(&message); /* the run that should be canceled is over, and its report is sent */
    return RUN_CLEAN;
}

int agent_serve(struct box *box) {
    enum run_result result;
    struct fault ignored = {0};
    prefork_prepare(box, false, &ignored); /* if this fails, the first run tries again and reports the fault */
    do
        result = serve_request(box);
    while (result == RUN_CLEAN);
    return result == RUN_CLEANUP_FAILED ? 1 : 0;
}

int command_serve(struct box *box) { return serve_request(box) == RUN_CLEANUP_FAILED ? 1 : 0; }

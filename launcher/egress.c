/* Loopback listeners and host names. All of 127.0.0.0/8 is local once the loopback interface is up, so every entry gets
 * its own address and keeps its port. */
#include "egress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64

static bool raise_loopback(void) {
    struct ifreq loopback = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    loopback.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    bool done = ioctl(fd, SIOCSIFFLAGS, &loopback) == 0;
    close(fd);
    return done;
}

static int listen_at(const struct egress_entry *entry) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(entry->port)};
    if (inet_pton(AF_INET, entry->address, &where.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&where, sizeof where) != 0 || listen(fd, BACKLOG) != 0)
        return -1;
    return fd;
}

static bool write_hosts(const struct slot *slot, const struct request *request) {
    int fd = openat(slot->root_rw_fd, "etc/hosts", O_WRONLY | O_TRUNC | O_CLOEXEC);
    char line[512];
    bool done = fd >= 0 && write_all(fd, "127.0.0.1 localhost\n", 20);
    for (size_t i = 0; done && i < request->egress_count; i++) {
        int size = snprintf(line, sizeof line, "%s %s\n", request->egress[i].address, request->egress[i].name);
        done = write_all(fd, line, (size_t)size);
    }
    if (fd >= 0)
        close(fd);
    return done;
}

static bool send_listeners(int control_fd, const int *listeners, size_t count) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(REQUEST_EGRESS_MAX * sizeof(int))];
    } control;
    static char word[] = "{\"egress\":1}\n";
    struct iovec part = {.iov_base = word, .iov_len = sizeof word - 1};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    memset(&control, 0, sizeof control);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(rights), listeners, count * sizeof(int));
    return sendmsg(control_fd, &header, MSG_NOSIGNAL) > 0;
}

bool egress_open(const struct slot *slot, const struct request *request, int control_fd, struct fault *fault) {
    int listeners[REQUEST_EGRESS_MAX];
    if (!raise_loopback())
        return fail_at(fault, "egress_loopback", -1);
    for (size_t i = 0; i < request->egress_count; i++) {
        listeners[i] = listen_at(&request->egress[i]);
        if (listeners[i] < 0)
            return fail_at(fault, "egress", (int)i);
    }
    if (!write_hosts(slot, request))
        return fail_at(fault, "egress_hosts", -1);
    bool sent = send_listeners(control_fd, listeners, request->egress_count);
    for (size_t i = 0; i < request->egress_count; i++)
        close(listeners[i]);
    return sent || fail_at(fault, "egress", -1);
}

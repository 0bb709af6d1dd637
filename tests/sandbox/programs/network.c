/* Tries to connect to the outside: argv = TCP port, UNIX socket path, abstract name, address of the host. */
#include "attempt.h"
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char *path, *abstract, *host;
static uint16_t tcp_port;

static int reach(const char *address, int kind)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(tcp_port)};
    inet_pton(AF_INET, address, &there.sin_addr);
    int fd = socket(AF_INET, kind, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&there, sizeof there) < 0)
        return -1;
    return (int)send(fd, "canary", 6, MSG_NOSIGNAL);
}
static int loopback(void) { return reach("127.0.0.1", SOCK_STREAM); }
static int host_address(void) { return reach(host, SOCK_STREAM); }
static int any_address(void) { return reach("0.0.0.0", SOCK_STREAM); }
static int datagram_out(void) { return reach(host, SOCK_DGRAM); }

static int loopback6(void)
{
    struct sockaddr_in6 there = {.sin6_family = AF_INET6, .sin6_port = htons(tcp_port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&there, sizeof there);
}

static int local(const char *name, int hidden)
{
    struct sockaddr_un there = {.sun_family = AF_UNIX};
    strncpy(there.sun_path + hidden, name, sizeof there.sun_path - 2);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&there, (socklen_t)(offsetof(struct sockaddr_un, sun_path)
        + (size_t)hidden + strlen(name)));
}
static int unix_path(void) { return local(path, 0); }
static int unix_abstract(void) { return local(abstract, 1); }
static int unix_docker(void) { return local("/var/run/docker.sock", 0); }
static int unix_bus(void) { return local("/run/dbus/system_bus_socket", 0); }
static int unix_systemd(void) { return local("/run/systemd/private", 0); }

static int raw(void) { return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP); }
static int packet(void) { return socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)); }
static int audit(void) { return socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT); }
static int vsock(void)
{
    struct { sa_family_t family; uint16_t zero; uint32_t port, cid; uint32_t more; } there = {40, 0, 1024, 2, 0};
    int fd = socket(40 /* AF_VSOCK */, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&there, sizeof there);
}
static int crypto(void) { return socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0); }

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    tcp_port = (uint16_t)atoi(argv[1]);
    path = argv[2], abstract = argv[3], host = argv[4];
    attempt("loopback", loopback);
    attempt("loopback6", loopback6);
    attempt("host_address", host_address);
    attempt("any_address", any_address);
    attempt("datagram_out", datagram_out);
    attempt("unix_path", unix_path);
    attempt("unix_abstract", unix_abstract);
    attempt("unix_docker", unix_docker);
    attempt("unix_bus", unix_bus);
    attempt("unix_systemd", unix_systemd);
    attempt("raw", raw);
    attempt("packet", packet);
    attempt("audit", audit);
    attempt("vsock", vsock);
    attempt("crypto", crypto);
    return verdict();
}

/*
 * Hostile probe net-tcp-outbound (network).
 * Connects by TCP, fast open, MPTCP and SCTP to 192.0.2.1, an address kept for documents.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

static int type = SOCK_STREAM, protocol;
/* 192.0.2.1 is kept for documents; nobody answers there. A time-out, or anything
   but "no way there" or "not allowed", means that packets leave. */
static long out(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
    inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
    int fd = socket(AF_INET, type | SOCK_NONBLOCK, protocol);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno == EHOSTUNREACH ? 0 : -1;
    struct pollfd p = {fd, POLLOUT, 0};
    int n = poll(&p, 1, 700), err = 0;
    socklen_t len = sizeof err;
    if (n == 0)
        return 0;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
    errno = err;
    return err == ENETUNREACH || err == EPERM || err == EACCES ? -1 : 0;
}
static long fast_open(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
    inet_pton(AF_INET, "192.0.2.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    /* The connect that needs no connect call. */
    if (sendto(fd, "x", 1, 0x20000000, (struct sockaddr *)&to, sizeof to) >= 0 ||
        errno == EINPROGRESS)
        return 0;
    return -1;
}

int main(void)
{
    say("START", "net-tcp-outbound");
    try_one("TCP to 192.0.2.1", out, 0);
    try_one("TCP fast open to 192.0.2.1", fast_open, 0);
    protocol = 262;
    try_one("MPTCP to 192.0.2.1", out, 0);
    protocol = 132;
    try_one("SCTP to 192.0.2.1", out, 0);
    return 0;
}

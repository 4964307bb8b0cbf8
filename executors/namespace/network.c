/*
 * network.c - a loopback that is up, a listener on it, and the variables that name it.
 *
 * The filter leaves stream sockets to us, too: they do for the requests that a datagram socket is
 * usually made for.
 */
#include "executors/namespace/network.h"

#include "executors/namespace/reach.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define BACKLOG   128
#define TEXT_(n)  #n
#define TEXT(n)   TEXT_(n)
#define PROXY_URL "://127.0.0.1:" TEXT(REACH_PORT)

const char *const network_variables[] = {"HTTP_PROXY=http" PROXY_URL,
                                         "http_proxy=http" PROXY_URL,
                                         "HTTPS_PROXY=http" PROXY_URL,
                                         "https_proxy=http" PROXY_URL,
                                         "ALL_PROXY=socks5h" PROXY_URL,
                                         "all_proxy=socks5h" PROXY_URL,
                                         "NO_PROXY=",
                                         "no_proxy=",
                                         "NODE_USE_ENV_PROXY=1",
                                         NULL};

int network_raise(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        return -errno;
    return 0;
}

int network_listen(void)
{
    const struct sockaddr_in here = {.sin_family = AF_INET,
                                     .sin_port = htons(REACH_PORT),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&here, sizeof(here)) < 0 ||
        listen(fd, BACKLOG) < 0)
        return -errno;
    return base_take_fd(&fd);
}

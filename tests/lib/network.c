/*
 * network.c - namespaces of the network for tests, by threads that live for one call.
 */
#include "tests/lib/network.h"

#include "protocol/base.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

struct call {
    int network; /* -1: stay here */
    int (*function)(void *context);
    void *context;
    int result;
};

static void *run_call(void *context)
{
    struct call *call = context;
    if (call->network >= 0 && setns(call->network, CLONE_NEWNET) != 0)
        call->result = -errno;
    else
        call->result = call->function(call->context);
    return NULL;
}

int network_call(int network, int (*function)(void *context), void *context)
{
    struct call call = {network, function, context, 0};
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_call, &call);
    if (error != 0)
        return -error;
    (void)pthread_join(thread, NULL);
    return call.result;
}

static int make(void *context)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    (void)context;
    if (unshare(CLONE_NEWNET) != 0)
        return -errno;
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        return -errno;
    int network = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return network < 0 ? -errno : network;
}

int network_new(void)
{
    return network_call(-1, make, NULL);
}

static int make_listener(void *context)
{
    struct sockaddr_in *address = context;
    socklen_t length = sizeof *address;
    const int on = 1;
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)address, length) != 0 || listen(fd, 512) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &length) != 0)
        return -errno;
    return base_take_fd(&fd);
}

int network_listen(int network, struct sockaddr_in *address)
{
    return network_call(network, make_listener, address);
}

static int make_connection(void *context)
{
    const struct sockaddr_in *address = context;
    AR_AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) != 0)
        return -errno;
    return base_take_fd(&fd);
}

int network_connect(int network, const struct sockaddr_in *address)
{
    struct sockaddr_in copy = *address;
    return network_call(network, make_connection, &copy);
}

struct sockaddr_in network_address(const char *text, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        memset(&address, 0, sizeof address);
    return address;
}

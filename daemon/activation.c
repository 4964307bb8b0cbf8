/*
 * activation.c - the socket that the service manager has made for us.
 *
 * The manager keeps the socket over our end: who connects meanwhile waits in its backlog for the next
 * daemon. So it is never unlinked, nor its mode changed, by us. Variables and descriptors are meant for
 * the process LISTEN_PID alone, and no child of ours gets to see them.
 */
#include "daemon/activation.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

/* A whole decimal number of the environment; -1: it is not there, or none. */
static long number_of(const char *name)
{
    char *end;
    const char *text = getenv(name);
    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    long number = strtol(text, &end, 10);
    return errno == 0 && *end == '\0' && number <= INT_MAX ? number : -1;
}

static bool has_option(int fd, int option, int wanted)
{
    int value;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 && value == wanted;
}

static const char *find_problem(int fd)
{
    if (!has_option(fd, SO_DOMAIN, AF_UNIX))
        return "it is no Unix socket";
    if (!has_option(fd, SO_TYPE, SOCK_STREAM))
        return "it is no stream socket";
    return has_option(fd, SO_ACCEPTCONN, 1) ? NULL : "it does not listen (Accept=no is needed)";
}

static int prepare(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
                   fcntl(fd, F_SETFD, FD_CLOEXEC) == 0
               ? 0
               : -errno;
}

int activation_take(int *fd, const char **problem)
{
    const long pid = number_of("LISTEN_PID"), count = number_of("LISTEN_FDS");
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
    *fd = -1;
    *problem = NULL;
    if (pid != (long)getpid() || count <= 0)
        return 0;
    *problem = count == 1 ? find_problem(FIRST_FD) : "more than one socket was passed";
    int rc = *problem ? 1 : prepare(FIRST_FD);
    if (rc == 0)
        *fd = FIRST_FD;
    for (long i = 0; rc != 0 && i < count && i < INT_MAX - FIRST_FD; i++)
        if (close(FIRST_FD + (int)i) < 0 && errno == EBADF)
            break;
    return rc;
}

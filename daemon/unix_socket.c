/*
 * unix_socket.c - see unix_socket.h.
 */
#include "daemon/unix_socket.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* A socket file that nobody listens on is left over from a daemon that was killed. */
static int remove_stale(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) != 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode))
        return -EEXIST;
    AR_AUTO_CLOSE int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return -errno;
    if (connect(probe, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN)
        return -EADDRINUSE;
    return unlink(address->sun_path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Nobody connects before the mode is right. */
static int bind_closed(int fd, const struct sockaddr_un *address)
{
    mode_t mask = umask(0777);
    int rc = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : -errno;
    (void)umask(mask);
    return rc;
}

static int open_to(int fd, const struct sockaddr_un *address, mode_t mode, int backlog)
{
    int rc = chmod(address->sun_path, mode) == 0 && listen(fd, backlog) == 0 ? 0 : -errno;
    if (rc < 0)
        (void)unlink(address->sun_path);
    return rc;
}

int unix_socket_listen(const char *path, mode_t mode, int backlog, int *fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length + 1);
    int rc = remove_stale(&address);
    if (rc < 0)
        return rc;
    AR_AUTO_CLOSE int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0)
        return -errno;
    rc = bind_closed(made, &address);
    if (rc == 0)
        rc = open_to(made, &address, mode, backlog);
    if (rc == 0)
        *fd = base_take_fd(&made);
    return rc;
}

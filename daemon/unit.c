/*
 * unit.c - which systemd unit a peer belongs to, by its control group.
 *
 * A pid can be used again between the moment when it is learned and the moment when it is looked up.
 * So the order here is fixed: take the descriptor of the peer, read what its number stands for, then ask
 * the descriptor whether the peer still runs. If it does, the number was his all the time. A zombie has
 * gone, too: it has left its groups.
 */
#include "daemon/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#    define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

#define PROC_BYTES   16384 /* of a file; longer ones are not taken */
#define UNIT_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@"

static bool ends_with(const char *text, size_t length, const char *tail)
{
    size_t n = strlen(tail);
    return length > n && memcmp(text + length - n, tail, n) == 0;
}

/* As unit_is_name(), of length bytes. */
static bool is_name(const char *text, size_t length)
{
    return length < UNIT_NAME_BYTES && strspn(text, UNIT_LETTERS) >= length && text[0] != '.' &&
           (ends_with(text, length, ".service") || ends_with(text, length, ".scope"));
}

bool unit_is_name(const char *text)
{
    size_t length = strlen(text);
    return strspn(text, UNIT_LETTERS) == length && is_name(text, length);
}

/* ---- the text of /proc/PID/cgroup --------------------------------------------------------------- */

/* Does the path lead out of what we see, or to a group that has gone? It ends at end. */
static bool is_unclear(const char *path, const char *end)
{
    if (path[0] != '/' || ends_with(path, (size_t)(end - path), " (deleted)"))
        return true;
    for (const char *part = path + 1; part < end; part++) {
        size_t length = strcspn(part, "/\n");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return true;
        part += length;
    }
    return false;
}

/* The first part that is no slice. systemd puts a "_" before a name that a control file could have. */
static int unit_of_path(const char *path, const char *end, char unit[UNIT_NAME_BYTES])
{
    const char *part = path + 1;
    size_t length = 0;
    for (; part < end; part += length + 1) {
        length = strcspn(part, "/\n");
        if (!ends_with(part, length, ".slice"))
            break;
    }
    if (part >= end)
        return 1;
    if (part[0] == '_') {
        part++;
        length--;
    }
    if (!is_name(part, length))
        return 1;
    memcpy(unit, part, length);
    unit[length] = '\0';
    return 0;
}

/* The path of a line that is of the unified hierarchy or of systemd's own, or NULL. */
static const char *path_of_line(const char *line, const char *end)
{
    static const char unified[] = "0::", named[] = ":name=systemd:";
    const char *colon = memchr(line, ':', (size_t)(end - line));
    if ((size_t)(end - line) >= strlen(unified) && memcmp(line, unified, strlen(unified)) == 0)
        return line + strlen(unified);
    if (colon && (size_t)(end - colon) >= strlen(named) && memcmp(colon, named, strlen(named)) == 0)
        return colon + strlen(named);
    return NULL;
}

int unit_from_groups(const char *text, char unit[UNIT_NAME_BYTES])
{
    bool found = false;
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char other[UNIT_NAME_BYTES];
        const char *path = path_of_line(line, end);
        if (!path)
            continue;
        if (path == end || is_unclear(path, end))
            return 1;
        if (unit_of_path(path, end, other) != 0)
            continue;
        if (found && strcmp(unit, other) != 0)
            return 1;
        memcpy(unit, other, sizeof other);
        found = true;
    }
    return found ? 0 : 1;
}

/* ---- the peer ----------------------------------------------------------------------------------- */

/* A whole small file. 0; 1 when it cannot be read or is longer: then nothing is said of the process. */
static int read_file(const char *path, char out[PROC_BYTES])
{
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    while (fd >= 0 && length < PROC_BYTES) {
        ssize_t n = read(fd, out + length, PROC_BYTES - length);
        if (n < 0)
            return 1;
        if (n == 0) {
            out[length] = '\0';
            return 0;
        }
        length += (size_t)n;
    }
    return 1;
}

/* Its number now, in our own pid namespace. 0; 1 when it has none. */
static int read_pid(int pidfd, long *pid)
{
    char path[64], text[PROC_BYTES];
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    if (read_file(path, text) != 0)
        return 1;
    const char *line = strstr(text, "\nPid:");
    return line && sscanf(line, "\nPid: %ld", pid) == 1 && *pid > 0 ? 0 : 1;
}

/* poll(2) tells of its end, whether or not it has been reaped; it needs no right over the process. */
static bool still_runs(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return poll(&end, 1, 0) == 0;
}

static int open_peer(int fd)
{
    int pidfd = -1;
    socklen_t length = sizeof pidfd;
    return getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) == 0 ? pidfd : -errno;
}

int unit_of_peer(int fd, char unit[UNIT_NAME_BYTES])
{
    char path[64], text[PROC_BYTES];
    long pid;
    AR_AUTO_CLOSE int pidfd = open_peer(fd);
    if (pidfd < 0) /* kernels before 6.16 have none for a peer that has been reaped */
        return pidfd == -ESRCH || pidfd == -EINVAL || pidfd == -ENODATA ? 1 : pidfd;
    if (read_pid(pidfd, &pid) != 0)
        return 1;
    (void)snprintf(path, sizeof path, "/proc/%ld/cgroup", pid);
    if (read_file(path, text) != 0 || !still_runs(pidfd))
        return 1;
    return unit_from_groups(text, unit);
}

int unit_try(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -errno;
    AR_AUTO_CLOSE int first = ends[0], second = ends[1];
    AR_AUTO_CLOSE int pidfd = open_peer(first);
    (void)second;
    return pidfd < 0 ? pidfd : 0;
}

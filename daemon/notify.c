/*
 * notify.c - tells the service manager how the daemon is.
 *
 * A message that cannot be sent is no error of ours: the manager's own time-out speaks then.
 */
#include "daemon/notify.h"

#include "daemon/clock.h"
#include "daemon/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

void notify_init(struct notify *notify)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path ? strlen(path) : 0;
    *notify = (struct notify){0};
    if (length > 1 && length < sizeof notify->address.sun_path &&
        (path[0] == '/' || path[0] == '@')) {
        notify->address.sun_family = AF_UNIX;
        memcpy(notify->address.sun_path, path, length);
        if (path[0] == '@')
            notify->address.sun_path[0] = 0; /* the abstract namespace */
        notify->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    }
    (void)unsetenv("NOTIFY_SOCKET");
}

void notify_send(const struct notify *notify, const char *state)
{
    if (!notify->length)
        return;
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (const struct sockaddr *)&notify->address, notify->length) < 0)
        log_warning("the service manager cannot be told %s: %m", state);
}

void notify_reloading(const struct notify *notify)
{
    char state[64];
    (void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)clock_monotonic_us());
    notify_send(notify, state);
}

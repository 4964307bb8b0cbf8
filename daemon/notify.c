/*
 * notify.c - tells the service manager how the daemon is.
 *
 * A message that cannot be sent is no error of ours: the manager's own time-out speaks then. Nothing here
 * waits: the manager's socket may be full.
 */
#include "daemon/notify.h"

#include "daemon/clock.h"
#include "daemon/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGE_BYTES 512

/* A whole decimal number of the environment; -1: it is not there, or none. */
static int64_t number_of(const char *name)
{
    char *end;
    const char *text = getenv(name);
    if (!text || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? number : -1;
}

/* sd_watchdog_enabled(3). */
static int64_t read_watchdog_ms(void)
{
    const int64_t pid = number_of("WATCHDOG_PID"), us = number_of("WATCHDOG_USEC");
    const bool is_ours = !getenv("WATCHDOG_PID") || pid == (int64_t)getpid();
    (void)unsetenv("WATCHDOG_PID");
    (void)unsetenv("WATCHDOG_USEC");
    return is_ours && us > 0 ? us / 1000 : 0;
}

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
    notify->watchdog_ms = read_watchdog_ms();
}

static void send_state(const struct notify *notify, const char *state)
{
    if (!notify->length)
        return;
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (const struct sockaddr *)&notify->address, notify->length) < 0)
        log_warning("the service manager cannot be told %.*s: %m", (int)strcspn(state, "\n"),
                    state);
}

void notify_ready(const struct notify *notify, const char *status)
{
    char message[MESSAGE_BYTES];
    (void)snprintf(message, sizeof message, "READY=1\nSTATUS=%s", status);
    send_state(notify, message);
}

void notify_reloading(const struct notify *notify, const char *status)
{
    char message[MESSAGE_BYTES];
    (void)snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\nSTATUS=%s",
                   clock_monotonic_us(), status);
    send_state(notify, message);
}

void notify_stopping(const struct notify *notify, const char *status)
{
    char message[MESSAGE_BYTES];
    (void)snprintf(message, sizeof message, "STOPPING=1\nSTATUS=%s", status);
    send_state(notify, message);
}

void notify_status(const struct notify *notify, const char *status)
{
    char message[MESSAGE_BYTES];
    (void)snprintf(message, sizeof message, "STATUS=%s", status);
    send_state(notify, message);
}

void notify_watchdog(const struct notify *notify)
{
    send_state(notify, "WATCHDOG=1");
}

/*
 * notify.h - tells the service manager how the daemon is (sd_notify(3), the plain socket protocol).
 */
#ifndef AUDITRUN_DAEMON_NOTIFY_H
#define AUDITRUN_DAEMON_NOTIFY_H

#include "protocol/base.h"

#include <sys/un.h>

struct notify {
    struct sockaddr_un address;
    socklen_t length;    /* 0: there is no service manager */
    int64_t watchdog_ms; /* so often it wants to hear from us, at the least; 0: it does not watch */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child ever
 * sees them. */
void notify_init(struct notify *notify);

/* What follows does nothing without a service manager. status, of our own words only, is what
 * `systemctl status` shows. */
void notify_ready(const struct notify *notify, const char *status);
/* A new configuration is being read: to be followed by notify_ready(), however it ends. */
void notify_reloading(const struct notify *notify, const char *status);
void notify_stopping(const struct notify *notify, const char *status);
void notify_status(const struct notify *notify, const char *status);
/* We are alive. To be called from the loop, a third of watchdog_ms after the last time. */
void notify_watchdog(const struct notify *notify);

#endif

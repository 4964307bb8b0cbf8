/*
 * notify.h - tells the service manager how the daemon is (sd_notify(3), the plain socket protocol).
 */
#ifndef AUDITRUN_DAEMON_NOTIFY_H
#define AUDITRUN_DAEMON_NOTIFY_H

#include "protocol/base.h"

#include <sys/un.h>

struct notify {
    struct sockaddr_un address;
    socklen_t length; /* 0: there is no service manager */
};

/* Takes NOTIFY_SOCKET out of the environment, so that no child ever sees it. */
void notify_init(struct notify *notify);
/* RELOADING=1 and the time of it, as sd_notify(3) asks; READY=1 says that it is over. */
void notify_reloading(const struct notify *notify);
/* "READY=1", "STOPPING=1"; does nothing without a service manager. */
void notify_send(const struct notify *notify, const char *state);

#endif

/*
 * notify.h - tells the service manager how the daemon is (sd_notify(3), the plain socket protocol).
 */
#ifndef AUDITRUN_DAEMON_NOTIFY_H
#define AUDITRUN_DAEMON_NOTIFY_H

/* Takes NOTIFY_SOCKET out of the environment, so that no child ever sees it. */
void notify_init(void);
/* "READY=1", "STOPPING=1"; does nothing without a service manager. */
void notify_send(const char *state);

#endif

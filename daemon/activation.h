/*
 * activation.h - the socket that the service manager has made for us (sd_listen_fds(3), the plain
 * protocol).
 */
#ifndef AUDITRUN_DAEMON_ACTIVATION_H
#define AUDITRUN_DAEMON_ACTIVATION_H

#include "protocol/base.h"

/* Takes LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES out of the environment. 0 with *fd the listening Unix
 * stream socket, close-on-exec and non-blocking, owned; or -1 when none was passed to this process. 1:
 * what was passed is not exactly one such socket, *problem says what; all of it is closed. -errno. */
int activation_take(int *fd, const char **problem) AR_MUST_CHECK;

#endif

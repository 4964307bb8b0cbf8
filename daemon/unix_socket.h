/*
 * unix_socket.h - a listening Unix socket under a path of the configuration.
 */
#ifndef AUDITRUN_DAEMON_UNIX_SOCKET_H
#define AUDITRUN_DAEMON_UNIX_SOCKET_H

#include "protocol/base.h"

#include <sys/types.h>

/* Binds and listens: non-blocking, close-on-exec, with this mode from the first moment that anybody can
 * connect. A stale socket file is taken away; a live one, or anything that is no socket, is an error. 0
 * with *fd and the file owned by the caller, or -errno (-EADDRINUSE: somebody answers there; nothing of
 * ours is left then). */
int unix_socket_listen(const char *path, mode_t mode, int backlog, int *fd) AR_MUST_CHECK;

#endif

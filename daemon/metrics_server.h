/*
 * metrics_server.h - GET /metrics over a Unix socket or a loopback address ([metrics]).
 */
#ifndef AUDITRUN_DAEMON_METRICS_SERVER_H
#define AUDITRUN_DAEMON_METRICS_SERVER_H

#include "protocol/base.h"

struct line;
struct metrics_server;

/* Binds what the configuration says. 0 with *out owned (NULL: it says nothing); -errno, with *where the
 * setting that could not be bound, borrowed from the configuration. The line must have all of its
 * services when the loop runs. */
int metrics_server_open(struct line *line, struct metrics_server **out,
                        const char **where) AR_MUST_CHECK;
/* Closes connections and sockets and takes the socket file away. NULL is harmless. */
void metrics_server_free(struct metrics_server *server);

#endif

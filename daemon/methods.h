/*
 * methods.h - what a client may ask, as a table: method, permitted when draining, handler.
 */
#ifndef AUDITRUN_DAEMON_METHODS_H
#define AUDITRUN_DAEMON_METHODS_H

#include "daemon/session.h"

/* Serves one line of a client. */
void methods_serve(struct session *session, const char *line, size_t length);
/* Answers a line that was too long to be one. */
void methods_refuse_line(struct session *session);

#endif

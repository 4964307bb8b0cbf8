/*
 * service.h - the daemon as a whole: what is started in which order, and ended in the other.
 */
#ifndef AUDITRUN_DAEMON_SERVICE_H
#define AUDITRUN_DAEMON_SERVICE_H

#include "daemon/config.h"

struct service;

/* Starts everything under a checked configuration, of the file at path (borrowed), from which it is
 * reloaded. id_space: the namespace with the ids of slots (idspace.h), borrowed; -1: none. 0 with *out
 * owned; 1 when it cannot be (said in the log); -errno. */
int service_start(const struct config *config, const char *path, int id_space,
                  struct service **out) AR_MUST_CHECK;
/* Serves until it is told to end. 0, or 1 when the start could not be finished (said in the log). */
int service_run(struct service *service) AR_MUST_CHECK;
void service_free(struct service *service);

#endif

/*
 * dataport_service.h - one connection to the service behind the data port.
 *
 * It is made with the first line that is sent, and again with the first after it was dropped. Lines
 * come back by callbacks from the loop, never from within a call of these functions; so does the end
 * of the connection.
 */
#ifndef AUDITRUN_DAEMON_DATAPORT_SERVICE_H
#define AUDITRUN_DAEMON_DATAPORT_SERVICE_H

#include "daemon/config.h"

struct event_base;
struct dataport_service;

struct dataport_service_events {
    /* A line, which is valid until the callback returns; it may drop the connection. */
    void (*line)(void *context, const char *line, size_t length);
    /* The connection is gone. too_big: a line was longer than an answer may be. */
    void (*gone)(void *context, bool too_big);
};

/* All is borrowed and outlives it. 0 with *out owned (dataport_service_free), or -ENOMEM. */
int dataport_service_new(struct event_base *base, const struct config_data_port *config,
                         const struct dataport_service_events *events, void *context,
                         struct dataport_service **out) AR_MUST_CHECK;

/* Sends a line, which is taken in any case (malloc'd; NULL is -ENOMEM). 0; 1 when the service cannot
 * be connected to; -errno. */
int dataport_service_send(struct dataport_service *service, char *line,
                          size_t length) AR_MUST_CHECK;

/* Whether lines are to be read. What comes in the meantime waits in the socket. */
void dataport_service_pause(struct dataport_service *service, bool paused);

/* Ends the connection, with all that waits to be sent. No callback. */
void dataport_service_drop(struct dataport_service *service);

/* NULL is fine. */
void dataport_service_free(struct dataport_service *service);

#endif

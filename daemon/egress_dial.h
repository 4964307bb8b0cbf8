/*
 * egress_dial.h - from a granted target to a connected socket: look up, check each address, connect.
 *
 * One lookup; the addresses of its answer are checked, and those that pass are tried in turn, by the
 * very bytes that were checked.
 */
#ifndef AUDITRUN_DAEMON_EGRESS_DIAL_H
#define AUDITRUN_DAEMON_EGRESS_DIAL_H

#include "daemon/deadline.h"
#include "daemon/resolver.h"
#include "protocol/target.h"

#define EGRESS_DIAL_MAX 4 /* addresses that are tried */

enum egress_dial_outcome {
    EGRESS_DIAL_CONNECTED,
    EGRESS_DIAL_FORBIDDEN, /* there is no address that may be connected to */
    EGRESS_DIAL_UNKNOWN,   /* there is no such name */
    EGRESS_DIAL_UNRESOLVED,
    EGRESS_DIAL_REFUSED,
    EGRESS_DIAL_UNREACHABLE,
    EGRESS_DIAL_TIMED_OUT
};

/* Once, from the loop, never before egress_dial_start() has returned; fd is handed over (-1 unless
 * connected). */
typedef void egress_dial_fn(void *context, enum egress_dial_outcome outcome, int fd);

/* Embedded by the connection; zeroed is idle. */
struct egress_dial {
    struct event_base *base;
    struct resolver *resolver;
    const struct config_network *config;
    egress_dial_fn *done;
    void *context;
    uint16_t port;
    struct resolver_query *query;
    struct address addresses[EGRESS_DIAL_MAX];
    size_t count, next;
    int64_t end_us; /* monotonic: all has to be done by then */
    enum egress_dial_outcome problem;
    int fd; /* that is being connected; only while connected is set */
    struct event *connected;
    struct deadline deadline;
};

/* base, resolver, config, done and context are set by the caller. 0, or -ENOMEM (idle again). */
int egress_dial_start(struct egress_dial *dial, const struct target *target) AR_MUST_CHECK;
/* Stops what is under way and frees what it is made of; safe on an idle or zeroed one. */
void egress_dial_stop(struct egress_dial *dial);

#endif

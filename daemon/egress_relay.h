/*
 * egress_relay.h - copies between code and network, both ways, until both have ended.
 *
 * No copy of ours is in the way while data flows: bytes are read and written in one step, and only
 * what the other side does not take is kept (up to EGRESS_RELAY_BYTES a direction), while nothing more
 * is read for it. An end goes on as an end, a broken connection as a broken one.
 */
#ifndef AUDITRUN_DAEMON_EGRESS_RELAY_H
#define AUDITRUN_DAEMON_EGRESS_RELAY_H

#include "daemon/deadline.h"
#include "daemon/egress_account.h"
#include "protocol/proxy_body.h"

#define EGRESS_RELAY_BYTES (256 * 1024)

enum egress_relay_side { EGRESS_RELAY_CODE, EGRESS_RELAY_NETWORK };

/* What goes first. All borrowed. */
struct egress_relay_first {
    const char *head; /* to the network */
    size_t head_length;
    const char
        *rest; /* of the code, behind its handshake: the beginning of the body or the tunnel */
    size_t rest_length;
    const void *reply; /* to the code */
    size_t reply_length;
};

/* One end of it; the descriptor is borrowed. */
struct egress_relay_end {
    int fd;
    struct event *readable, *writable;
};

/* From one end to the other. */
struct egress_relay_flow {
    char *pending; /* that the other end has not taken */
    size_t start, length;
    bool has_ended; /* nothing more comes */
    bool is_closed; /* and that has been passed on */
    bool is_deaf;   /* the other end takes nothing any more: what comes is thrown away */
    bool has_more;  /* came than may pass */
};

/* Once, from the loop. whole: both (of a request: the answer) came to their ends; else the connection is
 * broken, idle, or has used up what the run may send and receive. */
typedef void egress_relay_fn(void *context, bool whole);

/* Embedded by the connection; zeroed is idle. The first group is set by the caller. */
struct egress_relay {
    struct event_base *base;
    const struct config_network *config;
    struct egress_account *account;
    struct egress_use *use;
    struct proxy_body *body; /* of the one request that may pass; NULL: a tunnel */
    egress_relay_fn *done;
    void *context;

    struct egress_relay_end ends[2];
    struct egress_relay_flow flows[2]; /* from the end of the same index */
    int64_t active_us;
    struct deadline idle;
    bool is_broken;
};

/* 0, or -ENOMEM (idle again). */
int egress_relay_start(struct egress_relay *relay, int code, int network,
                       const struct egress_relay_first *first) AR_MUST_CHECK;
/* Frees what it is made of; the descriptors stay open. Safe on an idle or zeroed one. */
void egress_relay_stop(struct egress_relay *relay);

#endif

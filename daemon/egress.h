/*
 * egress.h - the network of one run: a proxy on a listener inside the run's own network namespace.
 *
 * The run has no interface but a loopback, and nothing in it but this listener. Whatever the code asks
 * for (HTTP CONNECT, plain HTTP, SOCKS5) is compared with the grant by name before anything is looked
 * up; names are looked up on the host, once for each connection; the address that was checked is the
 * one that is connected to. Everything lives in the event loop, bounded in connections, bytes and
 * time, and dies with the run.
 */
#ifndef AUDITRUN_DAEMON_EGRESS_H
#define AUDITRUN_DAEMON_EGRESS_H

#include "daemon/config.h"
#include "protocol/spec.h"

struct egress;
struct event_base;
struct resolver;

/* What a run's proxy is made of; all borrowed, and outlives it. */
struct egress_start {
    struct event_base *base;
    struct resolver *resolver;
    const struct config_network *config;
    const struct grant *grant; /* NETWORK_ALLOWLIST with its hosts, or NETWORK_OPEN */
};

/* 0 with *out owned (egress_free), or -ENOMEM. */
int egress_new(const struct egress_start *start, struct egress **out) AR_MUST_CHECK;

/* Takes over the listener that the provider made, and closes it in every case but 0. 0; 1 when it is
 * none that may be used: not a listening TCP socket over IPv4, or one in the host's own network
 * namespace, or the run has one already; -errno. */
int egress_listen(struct egress *egress, int listener) AR_MUST_CHECK;

/* Totals so far. */
void egress_usage(const struct egress *egress, struct usage_network *out);
/* For the caller: [{"host", "connections", "bytes_in", "bytes_out"}], one for each entry of the
 * grant that was used, in the grant's words (never the code's); NULL when out of memory. */
json_t *egress_hosts(const struct egress *egress) AR_MUST_CHECK;

/* Cuts all connections; no callback comes afterwards. NULL is fine. */
void egress_free(struct egress *egress);

#endif

/*
 * resolver.h - looks up names on the host, for all runs, in the event loop.
 */
#ifndef AUDITRUN_DAEMON_RESOLVER_H
#define AUDITRUN_DAEMON_RESOLVER_H

#include "daemon/config.h"

struct event_base;
struct resolver;
struct resolver_query;

#define RESOLVER_MAX_ADDRESSES 32 /* of one name; what is more is left out */

enum resolver_outcome {
    RESOLVER_FOUND,     /* one address at least */
    RESOLVER_NOT_FOUND, /* there is no such name */
    RESOLVER_FAILED     /* no name server could tell an address, or not in time */
};

/* The answer, once, from the loop: never before resolver_lookup() has returned. addresses is valid
 * during the call. The query is over with it. */
typedef void resolver_fn(void *context, enum resolver_outcome outcome,
                         const struct address *addresses, size_t count);

/* Of the name servers that the configuration names, or of those of the host (resolv.conf(5), with its
 * hosts(5)). Made whether or not anybody will look up anything; sends nothing by itself. 0 with *out
 * owned, or -errno. */
int resolver_new(struct event_base *base, const struct config_network *config,
                 struct resolver **out) AR_MUST_CHECK;
/* Every query has been answered or cancelled. What the loop still has to hear of requests that were
 * taken back it hears, and the memory is freed then. NULL is fine. */
void resolver_free(struct resolver *resolver);

/* Asks for the IPv4 and IPv6 addresses of exactly this name (no search list is tried), which must be one
 * of target_parse_host(). 0 with *out set, to be cancelled until the answer has come; -ENOMEM. */
int resolver_lookup(struct resolver *resolver, const char *name, int64_t timeout_ms,
                    resolver_fn *answer, void *context, struct resolver_query **out) AR_MUST_CHECK;
/* There will be no answer. NULL is fine. */
void resolver_cancel(struct resolver_query *query);

#endif

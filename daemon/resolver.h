/*
 * resolver.h - looks up names on the host, for all runs, in the event loop.
 */
#ifndef AUDITRUN_DAEMON_RESOLVER_H
#define AUDITRUN_DAEMON_RESOLVER_H

#include "daemon/config.h"

struct event_base;
struct resolver;

/* Of the name servers that the configuration names, or of those of the host (resolv.conf(5)). Made
 * whether or not anybody will look up anything; sends nothing by itself. 0 with *out owned, or
 * -errno. */
int resolver_new(struct event_base *base, const struct config_network *config,
                 struct resolver **out) AR_MUST_CHECK;
void resolver_free(struct resolver *resolver);

#endif

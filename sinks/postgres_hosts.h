/*
 * postgres_hosts.h - the addresses of the servers that a connection string names, without blocking.
 *
 * libpq asks the resolver while it starts to connect, and waits for it. Here a thread asks instead,
 * with the rules of the system (hosts file, NSS); a resolver that hangs costs that thread and never
 * the loop.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_HOSTS_H
#define AUDITRUN_SINKS_POSTGRES_HOSTS_H

#include "protocol/base.h"

struct event_base;
struct postgres_hosts;

/* What to give to libpq in place of what the connection string says: lists with commas. */
struct postgres_hosts_lists {
    const char *host, *hostaddr, *port;
};

/* Called once, from the loop; lists is borrowed, and NULL when not one address was found. */
typedef void postgres_hosts_fn(void *context, const struct postgres_hosts_lists *lists);

/* 0 with *out owned (postgres_hosts_free, also after the call back): done will be called. 1: there
 * is no name to ask for, libpq can start at once. -errno. */
int postgres_hosts_find(struct event_base *base, const char *conninfo, postgres_hosts_fn *done,
                        void *context, struct postgres_hosts **out) AR_MUST_CHECK;
/* Without a call back if there was none yet. */
void postgres_hosts_free(struct postgres_hosts *hosts);

#endif

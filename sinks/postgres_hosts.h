/*
 * postgres_hosts.h - the addresses of a server's name, without blocking.
 *
 * libpq asks the resolver while it starts to connect, and waits for it. Here a thread asks instead,
 * with the rules of the system (hosts file, NSS); a resolver that hangs costs that thread and never
 * the loop. Who has waited long enough may keep the question and look again later, so that a
 * resolver which never answers costs one thread a name, and not one an attempt.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_HOSTS_H
#define AUDITRUN_SINKS_POSTGRES_HOSTS_H

#include "protocol/base.h"

struct event_base;
struct postgres_hosts;

/* More of one name are not looked at. */
#define POSTGRES_HOSTS_ADDRESSES 16
#define POSTGRES_HOSTS_BYTES     80

/* Numeric, in the order in which the system would try them. Count 0: there is none. */
struct postgres_hosts_answer {
    size_t count;
    char addresses[POSTGRES_HOSTS_ADDRESSES][POSTGRES_HOSTS_BYTES];
};

/* Called once, from the loop, when there is an answer. */
typedef void postgres_hosts_fn(void *context, struct postgres_hosts *hosts);

/* Asks for a name. 0 with *out owned (postgres_hosts_free, also from within done): done will be
 * called. -errno. */
int postgres_hosts_ask(struct event_base *base, const char *name, postgres_hosts_fn *done,
                       void *context, struct postgres_hosts **out) AR_MUST_CHECK;
/* Borrowed; NULL as long as there is none. */
const struct postgres_hosts_answer *postgres_hosts_answer(const struct postgres_hosts *hosts);
/* Without a call back if there was none yet. */
void postgres_hosts_free(struct postgres_hosts *hosts);

#endif

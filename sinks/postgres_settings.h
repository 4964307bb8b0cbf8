/*
 * postgres_settings.h - what a connection string of libpq says, taken apart so that its hosts can be
 * tried one at a time.
 *
 * libpq itself has the last word on everything but the list of hosts: it is asked what it makes of
 * the string together with the environment, its service file and its defaults. It may keep
 * passwords; nothing of it is ever shown.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_SETTINGS_H
#define AUDITRUN_SINKS_POSTGRES_SETTINGS_H

#include "protocol/base.h"

#include <libpq-fe.h>

struct postgres_settings;

/* "" where the string says nothing. */
struct postgres_host {
    const char *host, *hostaddr, *port;
};

/* 0 with *out owned (postgres_settings_free), or -ENOMEM. A string that libpq does not understand
 * is taken too: it has one host, and connecting to that fails at once. */
int postgres_settings_new(const char *conninfo, struct postgres_settings **out) AR_MUST_CHECK;
void postgres_settings_free(struct postgres_settings *settings);

/* At least one, in the order of the string. Borrowed. */
size_t postgres_settings_hosts(const struct postgres_settings *settings);
const struct postgres_host *postgres_settings_host(const struct postgres_settings *settings,
                                                   size_t index);
/* The name that has to be resolved before the host can be connected to; NULL when there is none: a
 * socket, an address. */
const char *postgres_settings_name(const struct postgres_settings *settings, size_t index);
/* How long one attempt may take: connect_timeout, or 3 s. */
int postgres_settings_limit_ms(const struct postgres_settings *settings);

/* Starts to connect to one host, at an address of its name, or NULL when it has none. Does not
 * block. The caller's (PQfinish); NULL when memory is short. */
PGconn *postgres_settings_start(const struct postgres_settings *settings, size_t index,
                                const char *address) AR_MUST_CHECK;

#endif

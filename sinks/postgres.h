/*
 * postgres.h - the PostgreSQL sink; see postgres.c. Opened through sink_open().
 */
#ifndef AUDITRUN_SINKS_POSTGRES_H
#define AUDITRUN_SINKS_POSTGRES_H

#include "sinks/sink.h"

/* conninfo: connection string or URL for libpq. 0 with *out owned (sink_close), -errno. */
int postgres_open(const char *conninfo, struct event_base *base, struct sink **out) AR_MUST_CHECK;

#endif

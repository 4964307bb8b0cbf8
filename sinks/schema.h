/*
 * schema.h - makes a store ready: tables, triggers against changes, heads, keys. Blocking; for
 * `auditrun ledger init` and tests, never for the daemon's loop.
 */
#ifndef AUDITRUN_SINKS_SCHEMA_H
#define AUDITRUN_SINKS_SCHEMA_H

#include "protocol/base.h"

#define SCHEMA_MESSAGE_BYTES 512

/* Brings the store to the newest version; harmless when it is there already. Returns 0 (*applied:
 * number of migrations that were needed), 1 when the store says no (message: what failed, for an
 * operator), 2 when the URL is of no known form, -errno. */
int schema_init(const char *url, int *applied, char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif

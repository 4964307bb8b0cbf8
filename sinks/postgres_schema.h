/*
 * postgres_schema.h - brings a PostgreSQL ledger to the newest version, and tells what it has. Called
 * through schema.h.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_SCHEMA_H
#define AUDITRUN_SINKS_POSTGRES_SCHEMA_H

#include "sinks/schema.h"

/* The database must be there; the schema auditrun is created in it. As schema_init_with(). */
int postgres_schema_init(const char *conninfo, const struct schema_options *options, int *applied,
                         char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

/* As schema_status(); *status is zeroed before. */
int postgres_schema_status(const char *conninfo, struct schema_status *status,
                           char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif

/*
 * postgres_schema.h - brings a PostgreSQL ledger to the newest version. Called through
 * schema_init().
 */
#ifndef AUDITRUN_SINKS_POSTGRES_SCHEMA_H
#define AUDITRUN_SINKS_POSTGRES_SCHEMA_H

#include "sinks/schema.h"

/* The database must be there; the schema auditrun is created in it. As schema_init(). */
int postgres_schema_init(const char *conninfo, int *applied,
                         char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif

/*
 * sqlite_schema.h - brings a SQLite ledger to the newest version, and tells what it has. Called
 * through schema.h.
 */
#ifndef AUDITRUN_SINKS_SQLITE_SCHEMA_H
#define AUDITRUN_SINKS_SQLITE_SCHEMA_H

#include "sinks/schema.h"

/* Creates the file when it is missing, readable for its owner and group. As schema_init(). */
int sqlite_schema_init(const char *path, int *applied,
                       char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

/* As schema_status(); *status is zeroed before. */
int sqlite_schema_status(const char *path, struct schema_status *status,
                         char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif

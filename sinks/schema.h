/*
 * schema.h - makes a store ready (tables, triggers against changes, heads, keys, roles), and tells
 * what it has. Blocking; for `auditrun ledger init|migrate|status` and tests, never for the daemon's
 * loop.
 */
#ifndef AUDITRUN_SINKS_SCHEMA_H
#define AUDITRUN_SINKS_SCHEMA_H

#include "protocol/row.h"
#include "protocol/text.h"

#define SCHEMA_MESSAGE_BYTES 512
#define SCHEMA_WIDTH_BYTES   8

/* Brings the store to the newest version; harmless when it is there already. A store whose migrations
 * are not those of this program is left as it is. Returns 0 (*applied: number of migrations that were
 * needed; message: what this user could not make, for an operator, or ""), 1 when the store says no
 * (message: what failed), 2 when the URL is of no known form, -errno. */
int schema_init(const char *url, int *applied, char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

struct schema_options {
    /* Of PostgreSQL's partitions: "day", "week" or "month"; NULL: as it is, "week" in a new ledger.
     * Another width than before is for partitions that are yet to be made. */
    const char *partition_width;
};
/* The same with choices. 1 also when a choice is not one of these. */
int schema_init_with(const char *url, const struct schema_options *options, int *applied,
                     char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;

struct schema_status {
    int version;  /* of the store; 0: it is no ledger yet, and nothing below is set but newest */
    int newest;   /* what this program would bring it to */
    bool differs; /* its migrations are not those of this program, which must not use it */

    /* PostgreSQL only, and only when the version is the newest: */
    bool has_partitions;
    char partition_width[SCHEMA_WIDTH_BYTES];
    int64_t partitions;                    /* without the default one */
    char partitions_until[ROW_TIME_BYTES]; /* where the last one ends; "" when there is none */
    int64_t rows_in_default;               /* rows whose partition was not there */
    struct text_list roles_missing;
    struct text_list event_triggers_missing;
    /* What was changed since the last migration: "trigger refuse_change on runs was changed". */
    struct text_list changes;
};
/* Looks, and changes nothing. 0 with *status set (schema_status_free), 1 when the store says no
 * (message), 2 when the URL is of no known form, -errno. */
int schema_status(const char *url, struct schema_status *status,
                  char message[SCHEMA_MESSAGE_BYTES]) AR_MUST_CHECK;
void schema_status_free(struct schema_status *status);

#endif

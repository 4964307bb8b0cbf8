/*
 * metrics_table.h - every metric of the daemon: its name, type, meaning, and where its numbers come from.
 */
#ifndef AUDITRUN_DAEMON_METRICS_TABLE_H
#define AUDITRUN_DAEMON_METRICS_TABLE_H

#include "daemon/exposition.h"

struct line;

/* Writes all families, as they are now, without the end of the document. */
void metrics_table_write(struct line *line, struct exposition *exposition);

/* The i-th metric, for the test that holds the table against docs/metrics.md: the name of its samples
 * (of a histogram: without _bucket, _sum, _count), owned by the caller, or NULL past the end. */
char *metrics_table_name(size_t i, enum exposition_type *type) AR_MUST_CHECK;

#endif

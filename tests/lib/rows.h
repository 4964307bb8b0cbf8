/*
 * rows.h - what the ledger holds, for tests that count: read past the daemon, verified each time.
 */
#ifndef AUDITRUN_TESTS_LIB_ROWS_H
#define AUDITRUN_TESTS_LIB_ROWS_H

#include "protocol/record.h"

struct rows {
    struct record **items; /* owned; the newest first */
    size_t count;
};

/* All rows of the ledger. Ends the test when it cannot be read or is not whole (verify_ledger()). */
struct rows rows_read(const char *url);
void rows_free(struct rows *rows);

/* How many have this status (STATUS_NONE: any) and reason (REASON_NONE: any). */
size_t rows_count(const struct rows *rows, enum status status, enum reason reason);
/* The one row of a run: ends the test when there is none, or more than one. */
const struct record *rows_find(const struct rows *rows, const char *run_id);

/* Reads until there are at least so many rows; ends the test when there are not within ms. */
struct rows rows_wait(const char *url, size_t count, int64_t ms);
/* Reads, and ends the test unless there are exactly so many. */
void rows_expect(const char *url, size_t count);
/* The one row of the run of a result, which must say what the result says: status, reason, place in
 * the chain. */
void rows_expect_result(const char *url, const json_t *result);

#endif

/*
 * verify.h - walks every chain of a ledger and names the first row that is wrong.
 *
 * Per writer: seq starts at 1 and has no holes, prev_hash is the row_hash before, row_hash is what
 * the columns give, and the last row is the head that the store keeps. So an altered, dropped,
 * reordered or inserted row shows.
 */
#ifndef AUDITRUN_SINKS_VERIFY_H
#define AUDITRUN_SINKS_VERIFY_H

#include "sinks/reader.h"

enum verify_finding {
    VERIFY_OK,
    VERIFY_ALTERED,    /* "altered": the columns do not give row_hash */
    VERIFY_MISSING,    /* "missing": a seq is not there */
    VERIFY_REPEATED,   /* "repeated": a seq is there twice */
    VERIFY_UNLINKED,   /* "unlinked": prev_hash is not the hash of the row before */
    VERIFY_HEAD,       /* "head_differs": the last row is not the head (rows dropped at the end) */
    VERIFY_UNREADABLE, /* "unreadable": a column does not have its form */
    VERIFY_FINDING_COUNT
};
const char *verify_word(enum verify_finding finding);

struct verify_result {
    enum verify_finding finding;
    char writer[UUID7_TEXT_BYTES]; /* of the first bad row */
    int64_t seq;
    char run_id[UUID7_TEXT_BYTES]; /* "" when the row is not there */
    int64_t rows;                  /* checked */
    int64_t writers;
};

/* progress may be NULL; it is called every few thousand rows. 0 with *result set (look at finding),
 * 2 when the store failed (reader_message()), -errno. */
int verify_ledger(struct reader *reader, void (*progress)(void *context, int64_t rows, int64_t of),
                  void *context, struct verify_result *result) AR_MUST_CHECK;

#endif

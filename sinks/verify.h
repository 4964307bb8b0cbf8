/*
 * verify.h - walks every chain of a ledger and names the first row that is wrong.
 *
 * Per writer: seq starts at 1 and has no holes over runs and events, prev_hash is the row_hash before,
 * row_hash is what the columns give, and the last row is the head that the store keeps. Where a
 * partition was retired, the chain goes on behind the range that the event of it tells. So an altered,
 * dropped, reordered or inserted row shows; a history that was written anew as a whole shows at the
 * first checkpoint over it that was kept elsewhere. First is in the order of (writer, seq), and at one
 * row in the order of the findings below. The SQL function auditrun.verify() gives the same verdict,
 * but for signatures.
 */
#ifndef AUDITRUN_SINKS_VERIFY_H
#define AUDITRUN_SINKS_VERIFY_H

#include "sinks/reader.h"

enum verify_finding {
    VERIFY_OK,
    VERIFY_UNREADABLE, /* "unreadable": a column does not have its form */
    VERIFY_REPEATED,   /* "repeated": a seq is there twice */
    VERIFY_MISSING,    /* "missing": a seq is not there */
    VERIFY_ALTERED,    /* "altered": the columns do not give row_hash */
    VERIFY_UNLINKED,   /* "unlinked": prev_hash is not the hash of the row before */
    VERIFY_HEAD,       /* "head_differs": the last row is not the head (rows dropped at the end) */
    VERIFY_CHECKPOINT, /* "checkpoint_differs": a checkpoint has another hash, or another row */
    VERIFY_UNSIGNED, /* "unsigned": a signature is wrong or by a key that does not count, or rows were
                          retired without one */
    VERIFY_FINDING_COUNT
};
const char *verify_word(enum verify_finding finding);

/* NULL members are as if they were not there. */
struct verify_options {
    const char *writer;                   /* only this chain */
    const struct checkpoint *checkpoints; /* kept outside of the store */
    size_t checkpoint_count;
    const char *const *key_ids; /* only checkpoints by these keys count; none: by any key */
    size_t key_id_count;
    /* Called every few thousand rows. of: of about so many, -1: not known. */
    void (*progress)(void *context, int64_t rows, int64_t of);
    void *context;
};

struct verify_result {
    enum verify_finding finding;
    char writer[UUID7_TEXT_BYTES]; /* of the first bad row */
    int64_t seq;
    char row_id[UUID7_TEXT_BYTES]; /* its run_id or event_id; "" when the row is not there */
    int64_t rows;                  /* checked */
    int64_t writers;
    int64_t checkpoints; /* met on the way, each as it should be */
    int64_t retired;     /* rows that were jumped over */
};

/* options may be NULL. 0 with *result set (look at finding), 2 when the store failed
 * (reader_message()), -errno. */
int verify_ledger(struct reader *reader, const struct verify_options *options,
                  struct verify_result *result) AR_MUST_CHECK;

#endif

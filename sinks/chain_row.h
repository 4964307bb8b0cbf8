/*
 * chain_row.h - a row of a chain as the bytes that its hash is taken over, for a walk over all rows.
 *
 * A store hands the columns in, in the order of the layout, as it has them; what comes out is exactly
 * what row_hash() would hash, without a struct of the row, without reading JSON and without memory of
 * its own for a row: one buffer grows to the largest row and is used again. A column that does not
 * have its form makes the row unreadable (JSON is only looked at where it begins: what else it should
 * be is for the hash to say).
 */
#ifndef AUDITRUN_SINKS_CHAIN_ROW_H
#define AUDITRUN_SINKS_CHAIN_ROW_H

#include "protocol/row.h"

#define CHAIN_ROW_DIGEST_BYTES 32
#define CHAIN_ROW_UUID_BYTES   16

/* Zeroed is empty; chain_row_free(). */
struct chain_row {
    const struct row_layout *layout; /* record_layout or chain_event_layout */
    size_t column;                   /* the next one */
    size_t seq_column;               /* of the layout, as is what follows */
    unsigned char name_lengths[ROW_MAX_COLUMNS];
    bool readable;
    char id[UUID7_TEXT_BYTES], writer[UUID7_TEXT_BYTES]; /* "" when they cannot be read */
    int64_t seq;                                         /* 0: it cannot be read */
    bool retires;                                        /* an event partition_retired */
    char row_hash[DIGEST_HEX_BYTES];
    char *bytes; /* prev_hash "\n" canonical, once all columns are there */
    size_t length, capacity;
};

void chain_row_begin(struct chain_row *row, const struct row_layout *layout);
/* The next column, by what the store has: all return 0 or -ENOMEM. */
int chain_row_null(struct chain_row *row) AR_MUST_CHECK;
int chain_row_text(struct chain_row *row, const char *text, size_t length) AR_MUST_CHECK;
/* An integer, a time (us since the epoch), or a bool. */
int chain_row_integer(struct chain_row *row, int64_t value) AR_MUST_CHECK;
int chain_row_uuid(struct chain_row *row,
                   const unsigned char bytes[CHAIN_ROW_UUID_BYTES]) AR_MUST_CHECK;
int chain_row_digest(struct chain_row *row,
                     const unsigned char bytes[CHAIN_ROW_DIGEST_BYTES]) AR_MUST_CHECK;
/* A column of a type that is not the form's. */
int chain_row_wrong(struct chain_row *row) AR_MUST_CHECK;
/* The form of the next column. */
enum row_form chain_row_form(const struct chain_row *row);
void chain_row_free(struct chain_row *row);

/* The 64 hex digits of prev_hash, without a NUL. */
const char *chain_row_prev_hash(const struct chain_row *row);

/* SHA-256, set up once for all rows. NULL when libcrypto fails. */
struct chain_row_hasher;
struct chain_row_hasher *chain_row_hasher_new(void) AR_MUST_CHECK;
void chain_row_hasher_free(struct chain_row_hasher *hasher);
/* Do the bytes give row_hash? 0, 1, -EIO. */
int chain_row_check(struct chain_row_hasher *hasher, const struct chain_row *row) AR_MUST_CHECK;

#endif

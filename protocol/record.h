/*
 * record.h - the one immutable row of a run; row.h has its canonical bytes and its hash.
 *
 * A record holds no source, input, output, secret or foreign text: company, actor and purpose are
 * what the client claimed, everything else comes from closed vocabularies, digests and numbers.
 */
#ifndef AUDITRUN_PROTOCOL_RECORD_H
#define AUDITRUN_PROTOCOL_RECORD_H

#include "protocol/row.h"
#include "protocol/vocabulary.h"

#define RECORD_SCHEMA_VERSION 1

extern const struct row_layout record_layout; /* of struct record; the table is "runs" */

struct record {
    char run_id[UUID7_TEXT_BYTES];
    char writer[UUID7_TEXT_BYTES]; /* "" until sealed */
    int64_t seq;                   /* 0 until sealed; from 1 without holes within a writer */
    int64_t schema_version;
    char *company, *actor, *purpose;
    char *client_name;
    int64_t client_uid, client_gid, client_pid;
    char *language;
    char code_sha256[DIGEST_HEX_BYTES];
    int64_t code_bytes;
    char *grant;                            /* RFC 8785 text: the effective grant */
    char *provider, *provider_version;      /* NULL: no executor was chosen */
    char envelope_sha256[DIGEST_HEX_BYTES]; /* "": null */
    enum status status;
    enum reason reason;
    char *denials;             /* RFC 8785 text of a list; "[]" when none */
    int64_t exit_code, signal; /* ROW_NULL: null */
    char *usage;               /* RFC 8785 text of an object */
    char *trace_id;            /* NULL: null; 32 hex digits */
    int64_t received_at, started_at, finished_at, recorded_at; /* us since the epoch; started_at may
                                                                  be ROW_NULL */
    bool late;
    char prev_hash[DIGEST_HEX_BYTES];
    char row_hash[DIGEST_HEX_BYTES];
    /* Not columns of the row (and so not hashed): the key table of the same transaction. */
    char *idempotency_key; /* NULL: none */
    char request_sha256[DIGEST_HEX_BYTES];
};

/* A zeroed record with schema_version and nulls set. NULL when out of memory. */
struct record *record_new(void) AR_MUST_CHECK;
void record_free(struct record *record);
static inline void record_cleanup(struct record **record)
{
    record_free(*record);
}

/* Gives the record its place in a chain: writer, seq, recorded_at, late, prev_hash, row_hash. May be
 * called again when a batch certainly was not stored. 0, -ENOMEM, -EIO. */
int record_seal(struct record *record, const char *writer, int64_t seq, const char *prev_hash,
                int64_t recorded_at, bool late) AR_MUST_CHECK;
/* Recomputes the hash: 0 right, 1 wrong, -ENOMEM, -EIO. */
int record_check(const struct record *record) AR_MUST_CHECK;

/* As the client and `ledger show --json` see it: all columns, JSON columns as values. */
json_t *record_to_json(const struct record *record) AR_MUST_CHECK;
/* The other way round: for the journal, import, and the command line. 0 with *out owned, 1 with the
 * fault set, -ENOMEM. idempotency_key and request_sha256 are read and written too when
 * with_key is set (journal only). */
json_t *record_to_journal_json(const struct record *record) AR_MUST_CHECK;
int record_from_json(const json_t *value, bool with_key, struct record **out,
                     struct fault *fault) AR_MUST_CHECK;

#endif

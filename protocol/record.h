/*
 * record.h - the one immutable row of a run, its canonical bytes and its hash.
 *
 * canonical: one line a column, in the fixed order of record_columns, "name:value\n", or "name\n"
 * (no colon) for null, so that null and empty differ. No value holds a newline. Times are UTC with
 * microseconds, "2026-01-31T12:00:00.123456Z"; JSON columns are RFC 8785 text; bools are "true" and
 * "false". prev_hash and row_hash are not part of it: row_hash = SHA-256(prev_hash "\n" canonical).
 * Both sinks store exactly these texts (or types that give them back), so anyone can recompute it.
 *
 * A record holds no source, input, output, secret or foreign text: company, actor and purpose are
 * what the client claimed, everything else comes from closed vocabularies, digests and numbers.
 */
#ifndef AUDITRUN_PROTOCOL_RECORD_H
#define AUDITRUN_PROTOCOL_RECORD_H

#include "protocol/digest.h"
#include "protocol/json.h"
#include "protocol/uuid7.h"

#define RECORD_SCHEMA_VERSION 1
#define RECORD_TIME_BYTES     28
#define RECORD_NULL           INT64_MIN /* null in an integer or time column */

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
    int64_t exit_code, signal; /* RECORD_NULL: null */
    char *usage;               /* RFC 8785 text of an object */
    char *trace_id;            /* NULL: null; 32 hex digits */
    int64_t received_at, started_at, finished_at, recorded_at; /* us since the epoch; started_at may
                                                                  be RECORD_NULL */
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

/* The canonical bytes; malloc'd, NULL when out of memory. */
char *record_canonical(const struct record *record, size_t *length) AR_MUST_CHECK;

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

/* The columns of the row in canonical order, then prev_hash and row_hash; for sinks and tests. */
enum record_type { RECORD_TEXT, RECORD_INTEGER, RECORD_TIME, RECORD_BOOL, RECORD_JSON };
struct record_column {
    const char *name;
    enum record_type type;
};
extern const struct record_column record_columns[];
extern const size_t record_column_count;
/* One column as its canonical text: 0 with *text set (malloc'd; NULL: null), -ENOMEM, -ENOENT. */
int record_get(const struct record *record, size_t column, char **text) AR_MUST_CHECK;
/* Sets one column from its canonical text (NULL: null), as a sink reads it back. 0, 1 when the text
 * is not of the column's form, -ENOMEM. */
int record_set(struct record *record, size_t column, const char *text) AR_MUST_CHECK;

/* Time: us since the epoch to text and back (years 0001..9999). */
void record_time_text(int64_t us, char out[RECORD_TIME_BYTES]);
bool record_time_parse(const char *text, int64_t *us);

#endif

/*
 * record.c - the row of a run: its layout, its place in a chain, and the idempotency key that travels
 * with it.
 */
#include "protocol/record.h"

#include <stdio.h>
#include <string.h>

#define KEY_BYTES 200

#define COLUMN(name, form, nullable)                         \
    {                                                        \
#        name, form, offsetof(struct record, name), nullable \
    }

static const struct row_column columns[] = {
    COLUMN(run_id, ROW_ID, false),
    COLUMN(writer, ROW_WRITER, false),
    COLUMN(seq, ROW_INTEGER, false),
    COLUMN(schema_version, ROW_INTEGER, false),
    COLUMN(company, ROW_LINE, false),
    COLUMN(actor, ROW_LINE, false),
    COLUMN(purpose, ROW_LINE, false),
    COLUMN(client_name, ROW_LINE, true),
    COLUMN(client_uid, ROW_INTEGER, false),
    COLUMN(client_gid, ROW_INTEGER, false),
    COLUMN(client_pid, ROW_INTEGER, false),
    COLUMN(language, ROW_LINE, false),
    COLUMN(code_sha256, ROW_DIGEST, false),
    COLUMN(code_bytes, ROW_INTEGER, false),
    COLUMN(grant, ROW_OBJECT, false),
    COLUMN(provider, ROW_LINE, true),
    COLUMN(provider_version, ROW_LINE, true),
    COLUMN(envelope_sha256, ROW_DIGEST, true),
    COLUMN(status, ROW_STATUS, false),
    COLUMN(reason, ROW_REASON, false),
    COLUMN(denials, ROW_ARRAY, false),
    COLUMN(exit_code, ROW_INTEGER, true),
    COLUMN(signal, ROW_INTEGER, true),
    COLUMN(usage, ROW_OBJECT, false),
    COLUMN(trace_id, ROW_TRACE, true),
    COLUMN(received_at, ROW_TIME, false),
    COLUMN(started_at, ROW_TIME, true),
    COLUMN(finished_at, ROW_TIME, false),
    COLUMN(recorded_at, ROW_TIME, false),
    COLUMN(late, ROW_BOOL, false),
    COLUMN(prev_hash, ROW_CHAIN_DIGEST, false),
    COLUMN(row_hash, ROW_CHAIN_DIGEST, false),
};
const struct row_layout record_layout = {"runs", columns, AR_COUNT(columns)};
_Static_assert(AR_COUNT(columns) <= ROW_MAX_COLUMNS, "a row has a place for every column");

struct record *record_new(void)
{
    struct record *record = calloc(1, sizeof(*record));
    if (!record)
        return NULL;
    row_init(&record_layout, record);
    record->schema_version = RECORD_SCHEMA_VERSION;
    return record;
}

void record_free(struct record *record)
{
    if (!record)
        return;
    row_release(&record_layout, record);
    free(record->idempotency_key);
    free(record);
}

int record_seal(struct record *record, const char *writer, int64_t seq, const char *prev_hash,
                int64_t recorded_at, bool late)
{
    (void)snprintf(record->writer, sizeof(record->writer), "%s", writer);
    (void)snprintf(record->prev_hash, sizeof(record->prev_hash), "%s", prev_hash);
    record->seq = seq;
    record->recorded_at = recorded_at;
    record->late = late;
    return row_hash(&record_layout, record, record->prev_hash, record->row_hash);
}

int record_check(const struct record *record)
{
    char hash[DIGEST_HEX_BYTES];
    int error = row_hash(&record_layout, record, record->prev_hash, hash);
    if (error)
        return error;
    return strcmp(hash, record->row_hash) == 0 ? 0 : 1;
}

/* ---- JSON --------------------------------------------------------------------------------------- */

json_t *record_to_json(const struct record *record)
{
    return row_to_json(&record_layout, record);
}

json_t *record_to_journal_json(const struct record *record)
{
    AR_AUTO_JSON json_t *object = record_to_json(record);
    json_t *key = record->idempotency_key ? json_string(record->idempotency_key) : json_null();
    if (json_object_set_new(object, "idempotency_key", key) ||
        json_object_set_new(object, "request_sha256", json_string(record->request_sha256)))
        return NULL;
    return AR_TAKE(object);
}

static int read_key(struct record *record, const json_t *object, struct fault *fault)
{
    const json_t *value = json_object_get(object, "idempotency_key");
    const char *key = NULL;
    const char *digest = "";
    if (value && !json_is_null(value)) {
        if (json_check_line(value, "idempotency_key", NULL, 1, KEY_BYTES, &key, fault))
            return 1;
        record->idempotency_key = strdup(key);
        if (!record->idempotency_key)
            return -ENOMEM;
    }
    if (json_read_line(object, "request_sha256", NULL, 0, DIGEST_HEX_BYTES - 1, &digest, fault))
        return 1;
    if (digest[0] != '\0' && !digest_is_hex(digest))
        return json_fault(fault, NULL, "request_sha256", PROBLEM_MALFORMED);
    memcpy(record->request_sha256, digest, strlen(digest) + 1);
    return 0;
}

int record_from_json(const json_t *value, bool with_key, struct record **out, struct fault *fault)
{
    static const struct json_member key[] = {{"idempotency_key", false}, {"request_sha256", false}};
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    if (!record)
        return -ENOMEM;
    int error =
        row_from_json(&record_layout, value, key, with_key ? AR_COUNT(key) : 0, record, fault);
    if (error)
        return error;
    if (reason_status(record->reason) != record->status)
        return json_fault(fault, NULL, "reason", PROBLEM_CONFLICT);
    error = with_key ? read_key(record, value, fault) : 0;
    if (error)
        return error;
    *out = AR_TAKE(record);
    return 0;
}

/*
 * record.c - the row of a run as text, column by column, and its hash.
 *
 * One table says of each column its name, its type, and where and how struct record holds it; all
 * else (canonical bytes, JSON, what a sink reads and writes) walks that table, so that no column can
 * be forgotten in one of them. Times are in record_time.c.
 */
#include "protocol/record.h"
#include "protocol/text.h"

#include <stdio.h>
#include <string.h>

#define SCRATCH_BYTES  32 /* an integer or a time */
#define TRACE_ID_BYTES 32
#define KEY_BYTES      200

const struct record_column record_columns[] = {
    {"run_id", RECORD_TEXT},
    {"writer", RECORD_TEXT},
    {"seq", RECORD_INTEGER},
    {"schema_version", RECORD_INTEGER},
    {"company", RECORD_TEXT},
    {"actor", RECORD_TEXT},
    {"purpose", RECORD_TEXT},
    {"client_name", RECORD_TEXT},
    {"client_uid", RECORD_INTEGER},
    {"client_gid", RECORD_INTEGER},
    {"client_pid", RECORD_INTEGER},
    {"language", RECORD_TEXT},
    {"code_sha256", RECORD_TEXT},
    {"code_bytes", RECORD_INTEGER},
    {"grant", RECORD_JSON},
    {"provider", RECORD_TEXT},
    {"provider_version", RECORD_TEXT},
    {"envelope_sha256", RECORD_TEXT},
    {"status", RECORD_TEXT},
    {"reason", RECORD_TEXT},
    {"denials", RECORD_JSON},
    {"exit_code", RECORD_INTEGER},
    {"signal", RECORD_INTEGER},
    {"usage", RECORD_JSON},
    {"trace_id", RECORD_TEXT},
    {"received_at", RECORD_TIME},
    {"started_at", RECORD_TIME},
    {"finished_at", RECORD_TIME},
    {"recorded_at", RECORD_TIME},
    {"late", RECORD_BOOL},
    {"prev_hash", RECORD_TEXT},
    {"row_hash", RECORD_TEXT},
};
const size_t record_column_count = AR_COUNT(record_columns);

/* The columns that the hash covers: all but prev_hash and row_hash. */
#define HASHED_COUNT (AR_COUNT(record_columns) - 2)

/* How struct record holds a column, and with that which texts it takes. */
enum form {
    FORM_LINE,        /* char *: UTF-8 without control characters */
    FORM_OBJECT,      /* char *: JSON text of an object */
    FORM_ARRAY,       /* char *: JSON text of an array */
    FORM_TRACE,       /* char *: 32 hex digits */
    FORM_INTEGER,     /* int64_t */
    FORM_TIME,        /* int64_t */
    FORM_BOOL,        /* bool */
    FORM_STATUS,      /* enum status */
    FORM_REASON,      /* enum reason */
    FORM_RUN_ID,      /* char[UUID7_TEXT_BYTES] */
    FORM_WRITER,      /* char[UUID7_TEXT_BYTES]; "" is allowed */
    FORM_DIGEST,      /* char[DIGEST_HEX_BYTES]; "" is null where null is allowed */
    FORM_CHAIN_DIGEST /* char[DIGEST_HEX_BYTES]; "" is allowed and is not null */
};

#define AT(member) offsetof(struct record, member)

static const struct storage {
    size_t offset;
    enum form form;
    bool nullable;
} storages[] = {
    {AT(run_id), FORM_RUN_ID, false},
    {AT(writer), FORM_WRITER, false},
    {AT(seq), FORM_INTEGER, false},
    {AT(schema_version), FORM_INTEGER, false},
    {AT(company), FORM_LINE, false},
    {AT(actor), FORM_LINE, false},
    {AT(purpose), FORM_LINE, false},
    {AT(client_name), FORM_LINE, true},
    {AT(client_uid), FORM_INTEGER, false},
    {AT(client_gid), FORM_INTEGER, false},
    {AT(client_pid), FORM_INTEGER, false},
    {AT(language), FORM_LINE, false},
    {AT(code_sha256), FORM_DIGEST, false},
    {AT(code_bytes), FORM_INTEGER, false},
    {AT(grant), FORM_OBJECT, false},
    {AT(provider), FORM_LINE, true},
    {AT(provider_version), FORM_LINE, true},
    {AT(envelope_sha256), FORM_DIGEST, true},
    {AT(status), FORM_STATUS, false},
    {AT(reason), FORM_REASON, false},
    {AT(denials), FORM_ARRAY, false},
    {AT(exit_code), FORM_INTEGER, true},
    {AT(signal), FORM_INTEGER, true},
    {AT(usage), FORM_OBJECT, false},
    {AT(trace_id), FORM_TRACE, true},
    {AT(received_at), FORM_TIME, false},
    {AT(started_at), FORM_TIME, true},
    {AT(finished_at), FORM_TIME, false},
    {AT(recorded_at), FORM_TIME, false},
    {AT(late), FORM_BOOL, false},
    {AT(prev_hash), FORM_CHAIN_DIGEST, false},
    {AT(row_hash), FORM_CHAIN_DIGEST, false},
};
_Static_assert(AR_COUNT(storages) == AR_COUNT(record_columns), "one storage a column");

struct record *record_new(void)
{
    struct record *record = calloc(1, sizeof(*record));
    if (!record)
        return NULL;
    record->schema_version = RECORD_SCHEMA_VERSION;
    record->exit_code = RECORD_NULL;
    record->signal = RECORD_NULL;
    record->started_at = RECORD_NULL;
    return record;
}

void record_free(struct record *record)
{
    if (!record)
        return;
    for (size_t i = 0; i < AR_COUNT(storages); i++)
        if (storages[i].form <= FORM_TRACE)
            free(*(char **)((char *)record + storages[i].offset));
    free(record->idempotency_key);
    free(record);
}

/* ---- out ---------------------------------------------------------------------------------------- */

static const char *integer_text(int64_t value, enum form form, char scratch[SCRATCH_BYTES])
{
    if (value == RECORD_NULL)
        return NULL;
    if (form == FORM_TIME)
        record_time_text(value, scratch);
    else
        (void)snprintf(scratch, SCRATCH_BYTES, "%lld", (long long)value);
    return scratch;
}

/* The column's canonical text, borrowed from the record or written to scratch; NULL: null. */
static const char *column_text(const struct record *record, size_t column,
                               char scratch[SCRATCH_BYTES])
{
    const struct storage *storage = &storages[column];
    const void *at = (const char *)record + storage->offset;
    switch (storage->form) {
    case FORM_LINE:
    case FORM_OBJECT:
    case FORM_ARRAY:
    case FORM_TRACE:
        return *(char *const *)at;
    case FORM_INTEGER:
    case FORM_TIME:
        return integer_text(*(const int64_t *)at, storage->form, scratch);
    case FORM_BOOL:
        return *(const bool *)at ? "true" : "false";
    case FORM_STATUS:
        return status_word(*(const enum status *)at);
    case FORM_REASON:
        return reason_word(*(const enum reason *)at);
    case FORM_DIGEST:
        return *(const char *)at == '\0' && storage->nullable ? NULL : at;
    case FORM_RUN_ID:
    case FORM_WRITER:
    case FORM_CHAIN_DIGEST:
        break;
    }
    return at;
}

int record_get(const struct record *record, size_t column, char **text)
{
    char scratch[SCRATCH_BYTES];
    *text = NULL;
    if (column >= AR_COUNT(storages))
        return -ENOENT;
    const char *value = column_text(record, column, scratch);
    if (!value)
        return 0;
    *text = strdup(value);
    return *text ? 0 : -ENOMEM;
}

static char *append(char *end, const char *text)
{
    size_t length = strlen(text);
    memcpy(end, text, length);
    return end + length;
}

char *record_canonical(const struct record *record, size_t *length)
{
    char scratch[SCRATCH_BYTES];
    size_t size = 1;
    for (size_t i = 0; i < HASHED_COUNT; i++) {
        const char *value = column_text(record, i, scratch);
        size += strlen(record_columns[i].name) + 1 + (value ? strlen(value) + 1 : 0);
    }
    char *text = malloc(size);
    if (!text)
        return NULL;
    char *end = text;
    for (size_t i = 0; i < HASHED_COUNT; i++) {
        const char *value = column_text(record, i, scratch);
        end = append(end, record_columns[i].name);
        if (value) {
            *end++ = ':';
            end = append(end, value);
        }
        *end++ = '\n';
    }
    *end = '\0';
    *length = (size_t)(end - text);
    return text;
}

static int compute_hash(const struct record *record, char out[DIGEST_HEX_BYTES])
{
    size_t length;
    AR_AUTO_FREE char *canonical = record_canonical(record, &length);
    if (!canonical)
        return -ENOMEM;
    return digest_chain(record->prev_hash, canonical, length, out);
}

int record_seal(struct record *record, const char *writer, int64_t seq, const char *prev_hash,
                int64_t recorded_at, bool late)
{
    (void)snprintf(record->writer, sizeof(record->writer), "%s", writer);
    (void)snprintf(record->prev_hash, sizeof(record->prev_hash), "%s", prev_hash);
    record->seq = seq;
    record->recorded_at = recorded_at;
    record->late = late;
    return compute_hash(record, record->row_hash);
}

int record_check(const struct record *record)
{
    char hash[DIGEST_HEX_BYTES];
    int error = compute_hash(record, hash);
    if (error)
        return error;
    return strcmp(hash, record->row_hash) == 0 ? 0 : 1;
}

/* ---- in ----------------------------------------------------------------------------------------- */

static bool is_line(const char *text)
{
    size_t length = strlen(text);
    return text_is_utf8(text, length) && !text_has_control(text, length);
}

/* JSON text on one line; canonical or not is for the hash to say. 0, 1 or -ENOMEM. */
static int check_json(const char *text, json_type type)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20)
            return 1;
    json_error_t error = {0};
    AR_AUTO_JSON json_t *value = json_loads(text, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!value)
        return error.text[0] == '\0' ? -ENOMEM : 1;
    return json_typeof(value) == type ? 0 : 1;
}

static bool is_trace_id(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return length == TRACE_ID_BYTES && text[length] == '\0';
}

static bool parse_integer(const char *text, int64_t *out)
{
    const char *digits = text + (text[0] == '-');
    if (digits[0] < '0' || digits[0] > '9' || (digits[0] == '0' && (digits[1] || digits != text)))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value == RECORD_NULL)
        return false;
    *out = value;
    return true;
}

/* Replaces a char * column. */
static int set_pointer(char **at, enum form form, const char *text)
{
    if (form == FORM_LINE && !is_line(text))
        return 1;
    if (form == FORM_TRACE && !is_trace_id(text))
        return 1;
    if (form == FORM_OBJECT || form == FORM_ARRAY) {
        int error = check_json(text, form == FORM_OBJECT ? JSON_OBJECT : JSON_ARRAY);
        if (error)
            return error;
    }
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*at);
    *at = copy;
    return 0;
}

/* Replaces a char array column, or refuses. */
static int set_array(char *at, enum form form, const char *text)
{
    bool may_be_empty = form == FORM_WRITER || form == FORM_CHAIN_DIGEST;
    bool fits = form == FORM_RUN_ID   ? uuid7_is_valid(text)
                : form == FORM_WRITER ? uuid7_is_uuid(text)
                                      : digest_is_hex(text);
    if (!fits && !(may_be_empty && text[0] == '\0'))
        return 1;
    memcpy(at, text, strlen(text) + 1);
    return 0;
}

static int set_bool(bool *at, const char *text)
{
    bool value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0)
        return 1;
    *at = value;
    return 0;
}

/* A word, or "" for a run that has not ended. */
static int set_word(void *at, enum form form, const char *text)
{
    if (form == FORM_STATUS) {
        enum status status = STATUS_NONE;
        if (text[0] != '\0' && !status_from_word(text, &status))
            return 1;
        *(enum status *)at = status;
        return 0;
    }
    enum reason reason = REASON_NONE;
    if (text[0] != '\0' && !reason_from_word(text, &reason))
        return 1;
    *(enum reason *)at = reason;
    return 0;
}

static int set_null(void *at, enum form form)
{
    if (form <= FORM_TRACE) {
        free(*(char **)at);
        *(char **)at = NULL;
    } else if (form == FORM_DIGEST) {
        *(char *)at = '\0';
    } else {
        *(int64_t *)at = RECORD_NULL;
    }
    return 0;
}

int record_set(struct record *record, size_t column, const char *text)
{
    if (column >= AR_COUNT(storages))
        return 1;
    const struct storage *storage = &storages[column];
    void *at = (char *)record + storage->offset;
    if (!text)
        return storage->nullable ? set_null(at, storage->form) : 1;
    switch (storage->form) {
    case FORM_LINE:
    case FORM_OBJECT:
    case FORM_ARRAY:
    case FORM_TRACE:
        return set_pointer(at, storage->form, text);
    case FORM_INTEGER:
        return parse_integer(text, at) ? 0 : 1;
    case FORM_TIME:
        return record_time_parse(text, at) ? 0 : 1;
    case FORM_BOOL:
        return set_bool(at, text);
    case FORM_STATUS:
    case FORM_REASON:
        return set_word(at, storage->form, text);
    case FORM_RUN_ID:
    case FORM_WRITER:
    case FORM_DIGEST:
    case FORM_CHAIN_DIGEST:
        break;
    }
    return set_array(at, storage->form, text);
}

/* ---- JSON --------------------------------------------------------------------------------------- */

static json_t *column_json(const struct record *record, size_t column)
{
    char scratch[SCRATCH_BYTES];
    const char *text = column_text(record, column, scratch);
    if (!text)
        return json_null();
    switch (record_columns[column].type) {
    case RECORD_INTEGER:
        return json_integer(
            *(const int64_t *)(const void *)((const char *)record + storages[column].offset));
    case RECORD_BOOL:
        return json_boolean(text[0] == 't');
    case RECORD_JSON:
        return json_loads(text, JSON_ALLOW_NUL, NULL);
    case RECORD_TEXT:
    case RECORD_TIME:
        break;
    }
    return json_string(text);
}

json_t *record_to_json(const struct record *record)
{
    AR_AUTO_JSON json_t *object = json_object();
    for (size_t i = 0; i < record_column_count; i++)
        if (json_object_set_new(object, record_columns[i].name, column_json(record, i)))
            return NULL;
    return AR_TAKE(object);
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

/* The canonical text of a value that is of the column's type; NULL and *problem otherwise. *null is
 * set instead for null. */
static char *value_text(const json_t *value, enum record_type type, enum problem *problem)
{
    char scratch[SCRATCH_BYTES];
    *problem = PROBLEM_NONE;
    bool right = type == RECORD_INTEGER ? json_is_integer(value)
                 : type == RECORD_BOOL  ? json_is_boolean(value)
                 : type == RECORD_JSON  ? json_is_object(value) || json_is_array(value)
                                        : json_is_string(value);
    if (!right) {
        *problem = PROBLEM_WRONG_TYPE;
        return NULL;
    }
    if (type == RECORD_JSON)
        return json_canonical(value);
    if (type == RECORD_BOOL)
        return strdup(json_is_true(value) ? "true" : "false");
    if (type == RECORD_INTEGER) {
        (void)snprintf(scratch, sizeof(scratch), "%lld", (long long)json_integer_value(value));
        return strdup(scratch);
    }
    if (strlen(json_string_value(value)) != json_string_length(value)) {
        *problem = PROBLEM_CONTROL_CHARACTER;
        return NULL;
    }
    return strdup(json_string_value(value));
}

static int read_column(struct record *record, size_t column, const json_t *object,
                       struct fault *fault)
{
    const char *name = record_columns[column].name;
    const json_t *value = json_object_get(object, name);
    AR_AUTO_FREE char *text = NULL;
    if (!value)
        return json_fault(fault, NULL, name, PROBLEM_MISSING);
    if (!json_is_null(value)) {
        enum problem problem;
        text = value_text(value, record_columns[column].type, &problem);
        if (!text)
            return problem == PROBLEM_NONE ? -ENOMEM : json_fault(fault, NULL, name, problem);
    }
    int error = record_set(record, column, text);
    if (error <= 0)
        return error;
    return json_fault(fault, NULL, name, text ? PROBLEM_MALFORMED : PROBLEM_WRONG_TYPE);
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

/* Every member is a column (or belongs to the key). */
static int check_members(const json_t *value, bool with_key, struct fault *fault)
{
    struct json_member members[AR_COUNT(record_columns) + 2];
    size_t count = 0;
    for (; count < record_column_count; count++)
        members[count] = (struct json_member){record_columns[count].name, true};
    if (with_key) {
        members[count++] = (struct json_member){"idempotency_key", false};
        members[count++] = (struct json_member){"request_sha256", false};
    }
    return json_check_object(value, members, count, NULL, fault);
}

int record_from_json(const json_t *value, bool with_key, struct record **out, struct fault *fault)
{
    if (check_members(value, with_key, fault))
        return 1;
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    if (!record)
        return -ENOMEM;
    for (size_t i = 0; i < record_column_count; i++) {
        int error = read_column(record, i, value, fault);
        if (error)
            return error;
    }
    if (reason_status(record->reason) != record->status)
        return json_fault(fault, NULL, "reason", PROBLEM_CONFLICT);
    int error = with_key ? read_key(record, value, fault) : 0;
    if (error)
        return error;
    *out = AR_TAKE(record);
    return 0;
}

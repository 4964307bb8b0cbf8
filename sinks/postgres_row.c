/*
 * postgres_row.c - see postgres_row.h.
 */
#include "sinks/postgres_row.h"

#include "protocol/text.h"

#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_2000_US INT64_C(946684800000000)
#define UUID_BYTES    16
#define DIGEST_BYTES  32
#define ARRAY_HEADER  20
#define COUNT_OFFSET  12 /* in the header: how many items */

/* Object ids of built-in types: fixed for ever by pg_type.dat. That is what a column of a result has,
 * where a domain shows its base; 0: an enum. */
static const uint32_t base_types[ROW_FORM_COUNT] = {
    [ROW_LINE] = 25,    [ROW_OBJECT] = 114,      [ROW_ARRAY] = 114, [ROW_TRACE] = 25,
    [ROW_INTEGER] = 20, [ROW_TIME] = 1184,       [ROW_BOOL] = 16,   [ROW_STATUS] = 0,
    [ROW_REASON] = 0,   [ROW_KIND] = 0,          [ROW_ID] = 2950,   [ROW_WRITER] = 2950,
    [ROW_DIGEST] = 17,  [ROW_CHAIN_DIGEST] = 17,
};

#define COLUMN(name, form)                                \
    {                                                     \
#        name, form, offsetof(struct record, name), false \
    }

static const struct row_column key_columns[] = {
    COLUMN(company, ROW_LINE),
    COLUMN(idempotency_key, ROW_LINE),
    COLUMN(request_sha256, ROW_DIGEST),
    COLUMN(run_id, ROW_ID),
};

const struct row_layout postgres_row_keys = {
    .table = "keys", .columns = key_columns, .count = AR_COUNT(key_columns)};

/* ---- types ---------------------------------------------------------------------------------- */

static bool learn(const PGresult *result, int column, uint32_t *out)
{
    unsigned long oid = strtoul(PQgetvalue(result, 0, column), NULL, 10);
    *out = (uint32_t)oid;
    return oid > 0 && oid <= UINT32_MAX;
}

bool postgres_row_learn(const PGresult *result, struct postgres_types *types)
{
    uint32_t *own[] = {
        &types->records,           &types->events,           &types->keys,
        &types->forms[ROW_DIGEST], &types->forms[ROW_TRACE], &types->forms[ROW_STATUS],
        &types->forms[ROW_REASON], &types->forms[ROW_KIND]};
    if (PQntuples(result) != 1 || PQnfields(result) != (int)AR_COUNT(own))
        return false;
    memcpy(types->forms, base_types, sizeof(base_types));
    for (size_t i = 0; i < AR_COUNT(own); i++)
        if (!learn(result, (int)i, own[i]))
            return false;
    types->forms[ROW_CHAIN_DIGEST] = types->forms[ROW_DIGEST];
    return true;
}

/* ---- out ------------------------------------------------------------------------------------ */

static int make_room(struct postgres_rows *rows, size_t more)
{
    size_t needed;
    if (!base_add(rows->length, more, &needed))
        return -ENOMEM;
    if (needed <= rows->capacity)
        return 0;
    size_t capacity = needed + needed / 2 + 256;
    char *data = realloc(rows->data, capacity);
    if (!data)
        return -ENOMEM;
    rows->data = data;
    rows->capacity = capacity;
    return 0;
}

static void put_bytes(struct postgres_rows *rows, const void *bytes, size_t length)
{
    memcpy(rows->data + rows->length, bytes, length);
    rows->length += length;
}

static void put_int32(struct postgres_rows *rows, uint32_t value)
{
    uint32_t big = htobe32(value);
    put_bytes(rows, &big, sizeof(big));
}

static int put_item(struct postgres_rows *rows, const void *bytes, size_t length)
{
    if (length > INT32_MAX)
        return 1;
    int rc = make_room(rows, sizeof(uint32_t) + length);
    if (rc < 0)
        return rc;
    put_int32(rows, (uint32_t)length);
    put_bytes(rows, bytes, length);
    return 0;
}

static int put_null(struct postgres_rows *rows)
{
    int rc = make_room(rows, sizeof(uint32_t));
    if (rc == 0)
        put_int32(rows, UINT32_MAX);
    return rc;
}

static int put_integer(struct postgres_rows *rows, int64_t value)
{
    uint64_t big = htobe64((uint64_t)value);
    return put_item(rows, &big, sizeof(big));
}

static int put_uuid(struct postgres_rows *rows, const char *text)
{
    unsigned char bytes[UUID_BYTES];
    char digits[2 * UUID_BYTES + 1];
    char *end = digits;
    if (!uuid7_is_uuid(text))
        return 1;
    for (; *text; text++)
        if (*text != '-')
            *end++ = *text;
    *end = '\0';
    return text_from_hex(digits, sizeof(bytes), bytes) ? put_item(rows, bytes, sizeof(bytes)) : 1;
}

static int put_digest(struct postgres_rows *rows, const char *text)
{
    unsigned char bytes[DIGEST_BYTES];
    return text_from_hex(text, sizeof(bytes), bytes) ? put_item(rows, bytes, sizeof(bytes)) : 1;
}

static int put_value(struct postgres_rows *rows, enum row_form form, const struct row_value *value)
{
    int64_t time;
    char yes = value->integer != 0;
    if (value->is_null)
        return put_null(rows);
    switch (form) {
    case ROW_LINE:
    case ROW_OBJECT:
    case ROW_ARRAY:
    case ROW_TRACE:
    case ROW_STATUS:
    case ROW_REASON:
    case ROW_KIND:
        return put_item(rows, value->text, strlen(value->text));
    case ROW_INTEGER:
        return put_integer(rows, value->integer);
    case ROW_TIME:
        return base_sub(value->integer, EPOCH_2000_US, &time) ? put_integer(rows, time) : 1;
    case ROW_BOOL:
        return put_item(rows, &yes, 1);
    case ROW_ID:
    case ROW_WRITER:
        return put_uuid(rows, value->text);
    case ROW_DIGEST:
    case ROW_CHAIN_DIGEST:
        return put_digest(rows, value->text);
    case ROW_FORM_COUNT:
        break;
    }
    return 1;
}

static uint32_t row_type(const struct row_layout *layout, const struct postgres_types *types)
{
    if (layout == &record_layout)
        return types->records;
    return layout == &chain_event_layout ? types->events : types->keys;
}

/* The header of an array of one dimension; how many items it has is filled in at the end. */
int postgres_row_begin(struct postgres_rows *rows, const struct row_layout *layout,
                       const struct postgres_types *types)
{
    rows->layout = layout;
    rows->types = types;
    rows->length = rows->count = 0;
    int rc = make_room(rows, ARRAY_HEADER);
    if (rc < 0)
        return rc;
    put_int32(rows, 1);
    put_int32(rows, 0); /* no null among the rows */
    put_int32(rows, row_type(layout, types));
    put_int32(rows, 0);
    put_int32(rows, 1);
    return 0;
}

static int put_column(struct postgres_rows *rows, const void *row, size_t column)
{
    enum row_form form = rows->layout->columns[column].form;
    struct row_value value = row_value(rows->layout, row, column);
    int rc = make_room(rows, sizeof(uint32_t));
    if (rc < 0)
        return rc;
    put_int32(rows, rows->types->forms[form]);
    return put_value(rows, form, &value);
}

/* Its length, how many columns, and each with its type; the length is filled in at the end. */
int postgres_row_add(struct postgres_rows *rows, const void *row)
{
    size_t start = rows->length;
    int rc = make_room(rows, 2 * sizeof(uint32_t));
    if (rc < 0)
        return rc;
    put_int32(rows, 0);
    put_int32(rows, (uint32_t)rows->layout->count);
    for (size_t i = 0; i < rows->layout->count; i++) {
        rc = put_column(rows, row, i);
        if (rc != 0)
            return rc;
    }
    size_t length = rows->length - start - sizeof(uint32_t);
    if (length > INT32_MAX)
        return 1;
    uint32_t big = htobe32((uint32_t)length);
    memcpy(rows->data + start, &big, sizeof(big));
    rows->count++;
    return 0;
}

int postgres_row_end(struct postgres_rows *rows)
{
    uint32_t big = htobe32((uint32_t)rows->count);
    if (rows->length > INT_MAX)
        return 1;
    memcpy(rows->data + COUNT_OFFSET, &big, sizeof(big));
    return 0;
}

void postgres_row_free(struct postgres_rows *rows)
{
    free(rows->data);
    *rows = (struct postgres_rows){0};
}

char *postgres_row_insert_sql(const struct row_layout *layout, const char *more)
{
    AR_AUTO_FREE char *names = row_names(layout);
    char *sql;
    if (!names ||
        asprintf(&sql, "INSERT INTO auditrun.%s (%s) SELECT %s FROM unnest($1::auditrun.%s[])%s",
                 layout->table, names, names, layout->table, more) < 0)
        return NULL;
    return sql;
}

/* ---- in ------------------------------------------------------------------------------------- */

static bool read_integer(const char *bytes, int length, int64_t *out)
{
    uint64_t big;
    if (length != (int)sizeof(big))
        return false;
    memcpy(&big, bytes, sizeof(big));
    *out = (int64_t)be64toh(big);
    return *out != ROW_NULL; /* in a struct it would mean null, which it is not */
}

static bool read_time(const char *bytes, int length, char out[ROW_TIME_BYTES])
{
    int64_t time, us, again;
    if (!read_integer(bytes, length, &time) || !base_add(time, EPOCH_2000_US, &us))
        return false;
    row_time_text(us, out);
    /* A time that the text cannot tell (infinity, BC) comes back as another one. */
    return row_time_parse(out, &again) && again == us;
}

static void write_uuid(const unsigned char *bytes, char *at)
{
    static const size_t groups[] = {4, 2, 2, 2, 6};
    for (size_t i = 0; i < AR_COUNT(groups); i++) {
        if (i > 0)
            *at++ = '-';
        text_to_hex(bytes, groups[i], at);
        at += 2 * groups[i];
        bytes += groups[i];
    }
}

/* The canonical text of a value that is not null, borrowed or in scratch; NULL: not of its form. */
static const char *value_text(enum row_form form, const char *bytes, int length,
                              char scratch[DIGEST_HEX_BYTES])
{
    int64_t integer;
    switch (form) {
    case ROW_LINE:
    case ROW_OBJECT:
    case ROW_ARRAY:
    case ROW_TRACE:
    case ROW_STATUS:
    case ROW_REASON:
    case ROW_KIND:
        return strlen(bytes) == (size_t)length ? bytes : NULL;
    case ROW_INTEGER:
        if (!read_integer(bytes, length, &integer))
            return NULL;
        (void)snprintf(scratch, DIGEST_HEX_BYTES, "%" PRId64, integer);
        return scratch;
    case ROW_TIME:
        return read_time(bytes, length, scratch) ? scratch : NULL;
    case ROW_BOOL:
        return length == 1 ? (bytes[0] ? "true" : "false") : NULL;
    case ROW_ID:
    case ROW_WRITER:
        if (length != UUID_BYTES)
            return NULL;
        write_uuid((const unsigned char *)bytes, scratch);
        return scratch;
    case ROW_DIGEST:
    case ROW_CHAIN_DIGEST:
        if (length != DIGEST_BYTES)
            return NULL;
        text_to_hex(bytes, DIGEST_BYTES, scratch);
        return scratch;
    case ROW_FORM_COUNT:
        break;
    }
    return NULL;
}

/* An enum has an id that is not known here; its words are what row_set() looks at. */
static bool has_type(const PGresult *result, int at, enum row_form form)
{
    return PQfformat(result, at) == 1 &&
           (base_types[form] == 0 || PQftype(result, at) == base_types[form]);
}

static int read_column(const PGresult *result, int row, const struct row_layout *layout,
                       size_t column, void *out)
{
    int at = (int)column;
    char scratch[DIGEST_HEX_BYTES];
    enum row_form form = layout->columns[column].form;
    if (!has_type(result, at, form))
        return 1;
    if (PQgetisnull(result, row, at))
        return row_set(layout, out, column, NULL);
    const char *text =
        value_text(form, PQgetvalue(result, row, at), PQgetlength(result, row, at), scratch);
    return text ? row_set(layout, out, column, text) : 1;
}

int postgres_row_read(const PGresult *result, int row, const struct row_layout *layout, void *out)
{
    if (PQnfields(result) < (int)layout->count)
        return 1;
    for (size_t i = 0; i < layout->count; i++) {
        int rc = read_column(result, row, layout, i, out);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int postgres_row_read_record(const PGresult *result, int row, struct record **out)
{
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    if (!record)
        return -ENOMEM;
    int rc = postgres_row_read(result, row, &record_layout, record);
    if (rc == 0)
        *out = AR_TAKE(record);
    return rc;
}

/*
 * postgres_row.c - see postgres_row.h.
 */
#include "sinks/postgres_row.h"

#include <endian.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_2000_US INT64_C(946684800000000)
#define UUID_BYTES    16
#define ARRAY_HEADER  20

/* Object ids of built-in types: fixed for ever by pg_type.dat. */
static const struct {
    const char *name;
    uint32_t oid;
} types[] = {
    [COLUMN_UUID] = {"uuid", 2950},  [COLUMN_TEXT] = {"text", 25},
    [COLUMN_INTEGER] = {"int8", 20}, [COLUMN_TIME] = {"timestamptz", 1184},
    [COLUMN_BOOL] = {"bool", 16},    [COLUMN_JSON] = {"json", 114},
};

/* ---- out ------------------------------------------------------------------------------------ */

static int array_room(struct postgres_array *array, size_t more)
{
    size_t needed;
    if (!base_add(array->length, more, &needed))
        return -ENOMEM;
    if (needed <= array->capacity)
        return 0;
    size_t capacity = needed + needed / 2 + 256;
    char *data = realloc(array->data, capacity);
    if (!data)
        return -ENOMEM;
    array->data = data;
    array->capacity = capacity;
    return 0;
}

static void put_bytes(struct postgres_array *array, const void *bytes, size_t length)
{
    memcpy(array->data + array->length, bytes, length);
    array->length += length;
}

static void put_int32(struct postgres_array *array, uint32_t value)
{
    uint32_t big = htobe32(value);
    put_bytes(array, &big, sizeof(big));
}

static int put_item(struct postgres_array *array, const void *bytes, size_t length)
{
    if (length > INT32_MAX)
        return 1;
    int rc = array_room(array, sizeof(uint32_t) + length);
    if (rc < 0)
        return rc;
    put_int32(array, (uint32_t)length);
    put_bytes(array, bytes, length);
    return 0;
}

static int put_null(struct postgres_array *array)
{
    int rc = array_room(array, sizeof(uint32_t));
    if (rc == 0)
        put_int32(array, UINT32_MAX);
    return rc;
}

static int put_integer(struct postgres_array *array, int64_t value)
{
    uint64_t big = htobe64((uint64_t)value);
    return put_item(array, &big, sizeof(big));
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static int put_uuid(struct postgres_array *array, const char *text)
{
    unsigned char bytes[UUID_BYTES];
    size_t digits = 0;
    for (const char *c = text; *c; c++) {
        int digit = hex_digit(*c);
        if (digit < 0 && *c == '-')
            continue;
        if (digit < 0 || digits == 2 * sizeof(bytes))
            return 1;
        if (digits % 2 == 0)
            bytes[digits / 2] = (unsigned char)(digit << 4);
        else
            bytes[digits / 2] |= (unsigned char)digit;
        digits++;
    }
    return digits == 2 * sizeof(bytes) ? put_item(array, bytes, sizeof(bytes)) : 1;
}

static int put_value(struct postgres_array *array, enum column_type type,
                     const struct column_value *value)
{
    int64_t time;
    char yes = value->integer != 0;
    if (value->is_null)
        return put_null(array);
    switch (type) {
    case COLUMN_UUID:
        return put_uuid(array, value->text);
    case COLUMN_TEXT:
    case COLUMN_JSON:
        return put_item(array, value->text, strlen(value->text));
    case COLUMN_INTEGER:
        return put_integer(array, value->integer);
    case COLUMN_TIME:
        return base_sub(value->integer, EPOCH_2000_US, &time) ? put_integer(array, time) : 1;
    case COLUMN_BOOL:
        return put_item(array, &yes, 1);
    }
    return 1;
}

/* The header of an array of one dimension; how many items it has is filled in at the end. */
static int array_begin(struct postgres_array *array, enum column_type type)
{
    array->length = 0;
    int rc = array_room(array, ARRAY_HEADER);
    if (rc < 0)
        return rc;
    put_int32(array, 1);
    put_int32(array, 1); /* may hold nulls */
    put_int32(array, types[type].oid);
    put_int32(array, 0);
    put_int32(array, 1);
    return 0;
}

static int rows_begin(struct postgres_rows *rows, const enum column_type *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int rc = array_begin(&rows->columns[i], columns[i]);
        if (rc < 0)
            return rc;
    }
    rows->count = 0;
    return 0;
}

static int rows_end(struct postgres_rows *rows, size_t columns)
{
    uint32_t big = htobe32((uint32_t)rows->count);
    for (size_t i = 0; i < columns; i++) {
        struct postgres_array *array = &rows->columns[i];
        if (array->length > INT_MAX)
            return 1;
        memcpy(array->data + 12, &big, sizeof(big));
        rows->values[i] = array->data;
        rows->lengths[i] = (int)array->length;
        rows->formats[i] = 1;
    }
    return 0;
}

int postgres_row_fill(struct postgres_rows *rows, struct record *const *records, size_t count,
                      size_t *bad)
{
    enum column_type columns[COLUMNS_COUNT];
    for (size_t c = 0; c < COLUMNS_COUNT; c++)
        columns[c] = columns_table[c].type;
    int rc = rows_begin(rows, columns, COLUMNS_COUNT);
    for (size_t i = 0; i < count && rc == 0; i++) {
        for (size_t c = 0; c < COLUMNS_COUNT && rc == 0; c++) {
            struct column_value value = columns_value(records[i], c);
            rc = put_value(&rows->columns[c], columns[c], &value);
        }
        *bad = i;
        rows->count++;
    }
    if (rc != 0)
        return rc;
    *bad = count;
    return rows_end(rows, COLUMNS_COUNT);
}

int postgres_row_fill_keys(struct postgres_rows *rows, struct record *const *records, size_t count,
                           size_t *bad)
{
    static const enum column_type columns[POSTGRES_ROW_KEY_COLUMNS] = {COLUMN_TEXT, COLUMN_TEXT,
                                                                       COLUMN_TEXT, COLUMN_UUID};
    int rc = rows_begin(rows, columns, POSTGRES_ROW_KEY_COLUMNS);
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct record *record = records[i];
        if (!record->idempotency_key)
            continue;
        const char *texts[] = {record->company, record->idempotency_key, record->request_sha256,
                               record->run_id};
        for (size_t c = 0; c < POSTGRES_ROW_KEY_COLUMNS && rc == 0; c++) {
            struct column_value value = {.is_null = !texts[c], .text = texts[c]};
            rc = put_value(&rows->columns[c], columns[c], &value);
        }
        *bad = i;
        rows->count++;
    }
    if (rc != 0)
        return rc;
    *bad = count;
    return rows_end(rows, POSTGRES_ROW_KEY_COLUMNS);
}

void postgres_row_free(struct postgres_rows *rows)
{
    for (size_t i = 0; i < COLUMNS_COUNT; i++)
        free(rows->columns[i].data);
    *rows = (struct postgres_rows){0};
}

char *postgres_row_insert_sql(void)
{
    AR_AUTO_FREE char *names = columns_names();
    char *sql = NULL;
    size_t length = 0;
    FILE *stream = names ? open_memstream(&sql, &length) : NULL;
    if (!stream)
        return NULL;
    (void)fprintf(stream, "INSERT INTO auditrun.runs (%s) SELECT * FROM unnest(", names);
    for (size_t i = 0; i < COLUMNS_COUNT; i++)
        (void)fprintf(stream, "%s$%zu::%s[]", i > 0 ? ", " : "", i + 1,
                      types[columns_table[i].type].name);
    (void)fputs(")", stream);
    if (fclose(stream) != 0) {
        free(sql);
        return NULL;
    }
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
    return *out != RECORD_NULL; /* in a struct it would mean null, which it is not */
}

static bool read_time(const char *bytes, int length, char out[RECORD_TIME_BYTES])
{
    int64_t time, us, again;
    if (!read_integer(bytes, length, &time) || !base_add(time, EPOCH_2000_US, &us))
        return false;
    record_time_text(us, out);
    /* A time that the text cannot tell (infinity, BC) comes back as another one. */
    return record_time_parse(out, &again) && again == us;
}

static bool read_uuid(const char *bytes, int length, char out[UUID7_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    char *at = out;
    if (length != UUID_BYTES)
        return false;
    for (int i = 0; i < UUID_BYTES; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 15];
    }
    *at = '\0';
    return true;
}

#define SCRATCH_BYTES 40

/* The canonical text of a value that is not null, borrowed or in scratch; NULL: not of its form. */
static const char *value_text(enum column_type type, const char *bytes, int length,
                              char scratch[SCRATCH_BYTES])
{
    int64_t integer;
    switch (type) {
    case COLUMN_UUID:
        return read_uuid(bytes, length, scratch) ? scratch : NULL;
    case COLUMN_TEXT:
    case COLUMN_JSON:
        return strlen(bytes) == (size_t)length ? bytes : NULL;
    case COLUMN_INTEGER:
        if (!read_integer(bytes, length, &integer))
            return NULL;
        (void)snprintf(scratch, SCRATCH_BYTES, "%" PRId64, integer);
        return scratch;
    case COLUMN_TIME:
        return read_time(bytes, length, scratch) ? scratch : NULL;
    case COLUMN_BOOL:
        return length == 1 ? (bytes[0] ? "true" : "false") : NULL;
    }
    return NULL;
}

static int read_column(const PGresult *result, int row, size_t column, struct record *record)
{
    int at = (int)column;
    char scratch[SCRATCH_BYTES];
    enum column_type type = columns_table[column].type;
    if (PQftype(result, at) != types[type].oid || PQfformat(result, at) != 1)
        return 1;
    if (PQgetisnull(result, row, at))
        return record_set(record, column, NULL);
    const char *text =
        value_text(type, PQgetvalue(result, row, at), PQgetlength(result, row, at), scratch);
    return text ? record_set(record, column, text) : 1;
}

int postgres_row_read(const PGresult *result, int row, struct record **out)
{
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    if (!record)
        return -ENOMEM;
    if (PQnfields(result) < COLUMNS_COUNT)
        return 1;
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        int rc = read_column(result, row, i, record);
        if (rc != 0)
            return rc;
    }
    *out = AR_TAKE(record);
    return 0;
}

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
#define DIGEST_BYTES  32
#define ARRAY_HEADER  20
#define COUNT_OFFSET  12 /* in the header: how many items */

/* Object ids of built-in types: fixed for ever by pg_type.dat. */
#define TEXT_OID 25
static const struct {
    const char *name; /* of a parameter */
    uint32_t oid;     /* of a parameter, and of a column of a result */
    const char *cast; /* from the parameter's type; NULL: none */
} types[ROW_FORM_COUNT] = {
    [ROW_LINE] = {"text", TEXT_OID, NULL},
    [ROW_OBJECT] = {"json", 114, NULL},
    [ROW_ARRAY] = {"json", 114, NULL},
    [ROW_TRACE] = {"text", TEXT_OID, NULL},
    [ROW_INTEGER] = {"int8", 20, NULL},
    [ROW_TIME] = {"timestamptz", 1184, NULL},
    [ROW_BOOL] = {"bool", 16, NULL},
    [ROW_STATUS] = {"text", TEXT_OID, "auditrun.run_status"},
    [ROW_REASON] = {"text", TEXT_OID, "auditrun.run_reason"},
    [ROW_KIND] = {"text", TEXT_OID, "auditrun.event_kind"},
    [ROW_ID] = {"uuid", 2950, NULL},
    [ROW_WRITER] = {"uuid", 2950, NULL},
    [ROW_DIGEST] = {"bytea", 17, NULL},
    [ROW_CHAIN_DIGEST] = {"bytea", 17, NULL},
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

/* So many bytes from their hex digits; hyphens between bytes are passed over. */
static bool read_hex(const char *text, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (*text == '-')
            text++;
        int high = hex_digit(text[0]);
        int low = high < 0 ? -1 : hex_digit(text[1]);
        if (low < 0)
            return false;
        bytes[i] = (unsigned char)(high << 4 | low);
        text += 2;
    }
    return *text == '\0';
}

bool postgres_row_digest(const char *hex, unsigned char out[DIGEST_HEX_BYTES / 2])
{
    return !strchr(hex, '-') && read_hex(hex, out, DIGEST_BYTES);
}

static int put_uuid(struct postgres_array *array, const char *text)
{
    unsigned char bytes[UUID_BYTES];
    return read_hex(text, bytes, sizeof(bytes)) ? put_item(array, bytes, sizeof(bytes)) : 1;
}

static int put_digest(struct postgres_array *array, const char *text)
{
    unsigned char bytes[DIGEST_BYTES];
    return read_hex(text, bytes, sizeof(bytes)) ? put_item(array, bytes, sizeof(bytes)) : 1;
}

static int put_value(struct postgres_array *array, enum row_form form,
                     const struct row_value *value)
{
    int64_t time;
    char yes = value->integer != 0;
    if (value->is_null)
        return put_null(array);
    switch (form) {
    case ROW_LINE:
    case ROW_OBJECT:
    case ROW_ARRAY:
    case ROW_TRACE:
    case ROW_STATUS:
    case ROW_REASON:
    case ROW_KIND:
        return put_item(array, value->text, strlen(value->text));
    case ROW_INTEGER:
        return put_integer(array, value->integer);
    case ROW_TIME:
        return base_sub(value->integer, EPOCH_2000_US, &time) ? put_integer(array, time) : 1;
    case ROW_BOOL:
        return put_item(array, &yes, 1);
    case ROW_ID:
    case ROW_WRITER:
        return put_uuid(array, value->text);
    case ROW_DIGEST:
    case ROW_CHAIN_DIGEST:
        return put_digest(array, value->text);
    case ROW_FORM_COUNT:
        break;
    }
    return 1;
}

/* The header of an array of one dimension; how many items it has is filled in at the end. */
static int array_begin(struct postgres_array *array, enum row_form form)
{
    array->length = 0;
    int rc = array_room(array, ARRAY_HEADER);
    if (rc < 0)
        return rc;
    put_int32(array, 1);
    put_int32(array, 1); /* may hold nulls */
    put_int32(array, types[form].oid);
    put_int32(array, 0);
    put_int32(array, 1);
    return 0;
}

int postgres_row_begin(struct postgres_rows *rows, const struct row_layout *layout)
{
    rows->layout = layout;
    rows->count = 0;
    for (size_t i = 0; i < layout->count; i++) {
        int rc = array_begin(&rows->columns[i], layout->columns[i].form);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int postgres_row_add(struct postgres_rows *rows, const void *row)
{
    const struct row_layout *layout = rows->layout;
    for (size_t i = 0; i < layout->count; i++) {
        struct row_value value = row_value(layout, row, i);
        int rc = put_value(&rows->columns[i], layout->columns[i].form, &value);
        if (rc != 0)
            return rc;
    }
    rows->count++;
    return 0;
}

int postgres_row_end(struct postgres_rows *rows)
{
    uint32_t big = htobe32((uint32_t)rows->count);
    for (size_t i = 0; i < rows->layout->count; i++) {
        struct postgres_array *array = &rows->columns[i];
        if (array->length > INT_MAX)
            return 1;
        memcpy(array->data + COUNT_OFFSET, &big, sizeof(big));
        rows->values[i] = array->data;
        rows->lengths[i] = (int)array->length;
        rows->formats[i] = 1;
    }
    return 0;
}

void postgres_row_free(struct postgres_rows *rows)
{
    for (size_t i = 0; i < ROW_MAX_COLUMNS; i++)
        free(rows->columns[i].data);
    *rows = (struct postgres_rows){0};
}

static void write_insert(FILE *stream, const struct row_layout *layout, const char *names,
                         const char *more)
{
    (void)fprintf(stream, "INSERT INTO auditrun.%s (%s) SELECT ", layout->table, names);
    for (size_t i = 0; i < layout->count; i++) {
        const char *cast = types[layout->columns[i].form].cast;
        (void)fprintf(stream, "%s\"%s\"%s%s", i > 0 ? ", " : "", layout->columns[i].name,
                      cast ? "::" : "", cast ? cast : "");
    }
    (void)fputs(" FROM unnest(", stream);
    for (size_t i = 0; i < layout->count; i++)
        (void)fprintf(stream, "%s$%zu::%s[]", i > 0 ? ", " : "", i + 1,
                      types[layout->columns[i].form].name);
    (void)fprintf(stream, ") AS given (%s)%s", names, more);
}

char *postgres_row_insert_sql(const struct row_layout *layout, const char *more)
{
    AR_AUTO_FREE char *names = row_names(layout);
    char *sql = NULL;
    size_t length = 0;
    FILE *stream = names ? open_memstream(&sql, &length) : NULL;
    if (!stream)
        return NULL;
    write_insert(stream, layout, names, more);
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

static char *put_hex(char *at, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    *at = '\0';
    return at;
}

void postgres_row_hex(const unsigned char *bytes, char out[DIGEST_HEX_BYTES])
{
    (void)put_hex(out, bytes, DIGEST_BYTES);
}

static void write_uuid(const unsigned char *bytes, char *at)
{
    static const size_t groups[] = {4, 2, 2, 2, 6};
    for (size_t i = 0; i < AR_COUNT(groups); i++) {
        if (i > 0)
            *at++ = '-';
        at = put_hex(at, bytes, groups[i]);
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
        postgres_row_hex((const unsigned char *)bytes, scratch);
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
           (types[form].cast || PQftype(result, at) == types[form].oid);
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

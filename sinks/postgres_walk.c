/*
 * postgres_walk.c - see postgres_walk.h.
 *
 * One query has one shape of rows, so an event comes in the columns of a run that have its types, and
 * null elsewhere; the first column says which of the two a row is. COPY in binary format is: a header,
 * then per row the number of columns (16 bits), and per column its length (32 bits, -1: null) and its
 * bytes as the type's send function makes them; then a row of -1 columns. All in network order.
 */
#include "sinks/postgres_walk.h"

#include "protocol/chain_event.h"
#include "protocol/record.h"
#include "protocol/text.h"
#include "sinks/reader_sql.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#define EPOCH_2000_US   INT64_C(946684800000000)
#define HEADER_BYTES    19 /* signature, flags, length of the extension (which is empty) */
#define SIGNATURE_BYTES 11
#define WALK_COLUMNS    33

/* Where in a row the columns of an event are, in the order of their layout; 0 is the column that
 * tells events from runs. */
static const unsigned char event_columns[] = {1, 2, 3, 4, 5, 15, 26, 29, 30, 31, 32};

/* The types of both halves are the same, domains too: only then does the server merge along its
 * indexes, instead of sorting the whole ledger. */
static char *make_sql(const char *writer)
{
    char condition[32 + UUID7_TEXT_BYTES] = "";
    AR_AUTO_FREE char *names = row_names(&record_layout);
    char *sql = NULL;
    if (writer)
        (void)snprintf(condition, sizeof(condition), " WHERE writer = '%s'::uuid", writer);
    if (!names ||
        asprintf(&sql,
                 "COPY (SELECT false, %s FROM auditrun.runs%s UNION ALL SELECT true, event_id, "
                 "writer, seq, schema_version, kind::text, NULL, NULL, NULL, NULL, NULL, NULL, "
                 "NULL, NULL::auditrun.sha256, NULL, detail, NULL, NULL, NULL::auditrun.sha256, "
                 "NULL::auditrun.run_status, NULL::auditrun.run_reason, NULL, NULL, NULL, NULL, "
                 "NULL::auditrun.trace_id, happened_at, NULL, NULL, recorded_at, late, prev_hash, "
                 "row_hash FROM auditrun.events%s ORDER BY 3, 4) TO STDOUT (FORMAT binary)",
                 names, condition, condition) < 0)
        return NULL;
    return sql;
}

int postgres_walk_begin(struct postgres_walk *walk, PGconn *pg, const char *writer)
{
    if (writer && !uuid7_is_uuid(writer))
        return -EINVAL;
    AR_AUTO_FREE char *sql = make_sql(writer);
    if (!sql)
        return -ENOMEM;
    walk->begun = false;
    PGresult *result = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COPY_OUT ? 0 : 1;
}

/* ---- values ------------------------------------------------------------------------------------- */

/* What is left of a message. */
struct input {
    const unsigned char *at;
    size_t left;
};

/* One column: length < 0 is null. */
struct field {
    const unsigned char *bytes;
    int32_t length;
};

static bool take_field(struct input *input, struct field *field)
{
    uint32_t big;
    if (input->left < sizeof(big))
        return false;
    memcpy(&big, input->at, sizeof(big));
    field->length = (int32_t)be32toh(big);
    field->bytes = input->at + sizeof(big);
    size_t length = field->length < 0 ? 0 : (size_t)field->length;
    if (length > input->left - sizeof(big))
        return false;
    input->at = field->bytes + length;
    input->left -= sizeof(big) + length;
    return true;
}

static int64_t integer_of(const unsigned char *bytes)
{
    uint64_t big;
    memcpy(&big, bytes, sizeof(big));
    return (int64_t)be64toh(big);
}

static int put_time(struct chain_row *row, const unsigned char *bytes)
{
    int64_t us; /* infinity overflows */
    return base_add(integer_of(bytes), EPOCH_2000_US, &us) ? chain_row_integer(row, us)
                                                           : chain_row_wrong(row);
}

static int put_field(struct chain_row *row, const struct field *field)
{
    enum row_form form = chain_row_form(row);
    if (field->length < 0)
        return chain_row_null(row);
    size_t length = (size_t)field->length;
    switch (form) {
    case ROW_ID:
    case ROW_WRITER:
        return length == CHAIN_ROW_UUID_BYTES ? chain_row_uuid(row, field->bytes)
                                              : chain_row_wrong(row);
    case ROW_DIGEST:
    case ROW_CHAIN_DIGEST:
        return length == CHAIN_ROW_DIGEST_BYTES ? chain_row_digest(row, field->bytes)
                                                : chain_row_wrong(row);
    case ROW_INTEGER:
        return length == sizeof(int64_t) ? chain_row_integer(row, integer_of(field->bytes))
                                         : chain_row_wrong(row);
    case ROW_TIME:
        return length == sizeof(int64_t) ? put_time(row, field->bytes) : chain_row_wrong(row);
    case ROW_BOOL:
        return length == 1 ? chain_row_integer(row, field->bytes[0]) : chain_row_wrong(row);
    default:
        return chain_row_text(row, (const char *)field->bytes, length);
    }
}

/* ---- rows --------------------------------------------------------------------------------------- */

static int put_row(struct chain_row *row, const struct field fields[WALK_COLUMNS])
{
    bool is_event = fields[0].length == 1 && fields[0].bytes[0];
    chain_row_begin(row, is_event ? &chain_event_layout : &record_layout);
    int rc = 0;
    for (size_t i = 0; i < row->layout->count && rc == 0; i++)
        rc = put_field(row, &fields[is_event ? event_columns[i] : i + 1]);
    return rc;
}

static bool skip_header(struct postgres_walk *walk, struct input *input)
{
    static const char signature[SIGNATURE_BYTES] = "PGCOPY\n\377\r\n";
    if (walk->begun)
        return true;
    if (input->left < HEADER_BYTES || memcmp(input->at, signature, sizeof(signature)) != 0)
        return false;
    input->at += HEADER_BYTES;
    input->left -= HEADER_BYTES;
    walk->begun = true;
    return true;
}

/* 0, 1: it was the end, -EPROTO, -ENOMEM */
static int read_message(struct postgres_walk *walk, struct input *input)
{
    struct field fields[WALK_COLUMNS];
    uint16_t big;
    if (!skip_header(walk, input) || input->left < sizeof(big))
        return -EPROTO;
    memcpy(&big, input->at, sizeof(big));
    int16_t count = (int16_t)be16toh(big);
    input->at += sizeof(big);
    input->left -= sizeof(big);
    if (count == -1)
        return 1;
    if (count != WALK_COLUMNS)
        return -EPROTO;
    for (size_t i = 0; i < WALK_COLUMNS; i++)
        if (!take_field(input, &fields[i]))
            return -EPROTO;
    return put_row(&walk->row, fields);
}

/* How the COPY ended: 1 well, 2 not. */
static int end(PGconn *pg, int length)
{
    if (length != -1)
        return 2;
    PGresult *result = PQgetResult(pg);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK ? 1 : 2;
}

int postgres_walk_next(struct postgres_walk *walk, PGconn *pg, const struct chain_row **out)
{
    int rc = 1;
    while (rc == 1) { /* what is behind the last row is no row */
        char *message = NULL;
        int length = PQgetCopyData(pg, &message, 0);
        if (length < 0)
            return end(pg, length);
        struct input input = {(const unsigned char *)message, (size_t)length};
        rc = read_message(walk, &input);
        PQfreemem(message);
    }
    *out = &walk->row;
    return rc;
}

void postgres_walk_drain(PGconn *pg)
{
    char *message = NULL;
    while (PQgetCopyData(pg, &message, 0) > 0)
        PQfreemem(message);
}

void postgres_walk_free(struct postgres_walk *walk)
{
    chain_row_free(&walk->row);
}

/* ---- checkpoints -------------------------------------------------------------------------------- */

static const unsigned char *bytes_of(const PGresult *result, int column, size_t length)
{
    if (PQgetisnull(result, 0, column) || PQgetlength(result, 0, column) != (int)length)
        return NULL;
    return (const unsigned char *)PQgetvalue(result, 0, column);
}

static void write_uuid(const unsigned char *bytes, char out[UUID7_TEXT_BYTES])
{
    char hex[2 * CHAIN_ROW_UUID_BYTES + 1];
    text_to_hex(bytes, CHAIN_ROW_UUID_BYTES, hex);
    (void)snprintf(out, UUID7_TEXT_BYTES, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
                   hex + 16, hex + 20);
}

/* A time that its text cannot tell (infinity, BC) comes back as another one. */
static bool read_time(const unsigned char *bytes, int64_t *us)
{
    char text[ROW_TIME_BYTES];
    int64_t again;
    if (!base_add(integer_of(bytes), EPOCH_2000_US, us))
        return false;
    row_time_text(*us, text);
    return row_time_parse(text, &again) && again == *us;
}

bool postgres_walk_checkpoint(const PGresult *result, struct checkpoint *out)
{
    if (PQnfields(result) != READER_SQL_CHECKPOINT_COLUMNS)
        return false;
    const unsigned char *writer = bytes_of(result, READER_SQL_WRITER, CHAIN_ROW_UUID_BYTES);
    const unsigned char *seq = bytes_of(result, READER_SQL_SEQ, sizeof(int64_t));
    const unsigned char *row_hash = bytes_of(result, READER_SQL_ROW_HASH, CHAIN_ROW_DIGEST_BYTES);
    const unsigned char *made_at = bytes_of(result, READER_SQL_MADE_AT, sizeof(int64_t));
    const unsigned char *key_id = bytes_of(result, READER_SQL_KEY_ID, CHAIN_ROW_DIGEST_BYTES);
    const unsigned char *signature =
        bytes_of(result, READER_SQL_SIGNATURE, CHECKPOINT_SIGNATURE_BYTES);
    const unsigned char *public_key = bytes_of(result, READER_SQL_PUBLIC_KEY, CHECKPOINT_KEY_BYTES);
    if (writer)
        write_uuid(writer, out->writer);
    if (seq)
        out->seq = integer_of(seq);
    if (row_hash)
        text_to_hex(row_hash, CHAIN_ROW_DIGEST_BYTES, out->row_hash);
    if (key_id)
        text_to_hex(key_id, CHAIN_ROW_DIGEST_BYTES, out->key_id);
    if (signature)
        memcpy(out->signature, signature, sizeof(out->signature));
    if (public_key)
        memcpy(out->public_key, public_key, sizeof(out->public_key));
    return writer && row_hash && made_at && key_id && signature && out->seq > 0 &&
           read_time(made_at, &out->made_at);
}

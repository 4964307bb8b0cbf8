/*
 * sqlite_reader.c - reads a SQLite ledger row by row.
 *
 * The connection cannot write rows (query_only); it may still have to write the shared memory file
 * beside the database, as every reader of a log in WAL mode.
 */
#include "sinks/sqlite_reader.h"

#include "sinks/reader_ops.h"
#include "sinks/reader_sql.h"
#include "sinks/sqlite_row.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#define LOCK_WAIT_MS 10000

static const struct reader_sql_dialect dialect = {.schema = "",
                                                  .text = "?%zu",
                                                  .uuid = "?%zu",
                                                  .time = "?%zu",
                                                  .integer = "CAST(?%zu AS INTEGER)",
                                                  .digest = "?%zu",
                                                  .status = "?%zu",
                                                  .kind = "?%zu"};

/* One of the tables that a walk merges. */
struct source {
    const struct row_layout *layout;
    sqlite3_stmt *statement; /* NULL: there are no more rows */
    struct chain_row row;    /* its next one */
};

struct sqlite_reader {
    struct reader reader;
    sqlite3 *db;
    sqlite3_stmt *rows; /* of the query that is going on, or NULL */
    struct source sources[2];
    struct source *given; /* whose row the caller has */
};

static int say(struct sqlite_reader *reader, int code)
{
    (void)snprintf(reader->reader.message, READER_MESSAGE_BYTES, "%s", sqlite3_errmsg(reader->db));
    return code;
}

static void end_query(struct sqlite_reader *reader)
{
    (void)sqlite3_finalize(reader->rows);
    reader->rows = NULL;
    for (size_t i = 0; i < AR_COUNT(reader->sources); i++) {
        (void)sqlite3_finalize(reader->sources[i].statement);
        reader->sources[i].statement = NULL;
    }
    reader->given = NULL;
}

static int sqlite_freeze(struct reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    end_query(reader);
    /* A transaction sees one moment, from its first read on. */
    if (sqlite3_exec(reader->db, "BEGIN; SELECT 1 FROM runs LIMIT 1", NULL, NULL, NULL) !=
        SQLITE_OK)
        return say(reader, 2);
    return 0;
}

static void sqlite_thaw(struct reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    end_query(reader);
    (void)sqlite3_exec(reader->db, "COMMIT", NULL, NULL, NULL);
}

static int sqlite_query(struct reader *base, enum reader_sql_table table,
                        const struct reader_filter *filter, enum reader_order order)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    AR_CLEANUP(reader_sql_free) struct reader_sql sql;
    end_query(reader);
    int rc = reader_sql_build(&dialect, table, filter, order, &sql);
    if (rc < 0)
        return rc;
    if (sqlite3_prepare_v2(reader->db, sql.text, -1, &reader->rows, NULL) != SQLITE_OK)
        return say(reader, 1);
    for (size_t i = 0; i < sql.count; i++)
        if (sqlite3_bind_text(reader->rows, (int)i + 1, sql.values[i], -1, SQLITE_TRANSIENT) !=
            SQLITE_OK)
            return say(reader, 1);
    return 0;
}

/* 0: the statement stands on a row. */
static int next_row(struct sqlite_reader *reader)
{
    if (!reader->rows)
        return 1;
    int rc = sqlite3_step(reader->rows);
    if (rc == SQLITE_ROW)
        return 0;
    if (rc != SQLITE_DONE)
        return say(reader, 2);
    end_query(reader);
    return 1;
}

static int sqlite_next(struct reader *base, const struct row_layout *layout, void *row)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    int rc = next_row(reader);
    if (rc != 0)
        return rc;
    rc = sqlite_row_read(reader->rows, layout, row);
    return rc == 1 ? READER_UNREADABLE : rc;
}

/* ---- checkpoints -------------------------------------------------------------------------------- */

/* Copies a text of exactly so many characters, and its NUL. */
static bool read_exactly(sqlite3_stmt *statement, int column, size_t length, char *out)
{
    const char *text = sqlite3_column_type(statement, column) == SQLITE_TEXT
                           ? (const char *)sqlite3_column_text(statement, column)
                           : NULL;
    if (!text || strlen(text) != length)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

static bool read_bytes(sqlite3_stmt *statement, int column, size_t count, unsigned char *out)
{
    char text[2 * CHECKPOINT_SIGNATURE_BYTES + 1];
    return read_exactly(statement, column, 2 * count, text) && text_from_hex(text, count, out);
}

static bool read_checkpoint(sqlite3_stmt *statement, struct checkpoint *out)
{
    char made_at[ROW_TIME_BYTES];
    out->seq = sqlite3_column_int64(statement, READER_SQL_SEQ);
    return read_exactly(statement, READER_SQL_WRITER, UUID7_TEXT_BYTES - 1, out->writer) &&
           uuid7_is_uuid(out->writer) && out->seq > 0 &&
           read_exactly(statement, READER_SQL_ROW_HASH, DIGEST_HEX_BYTES - 1, out->row_hash) &&
           digest_is_hex(out->row_hash) &&
           read_exactly(statement, READER_SQL_MADE_AT, ROW_TIME_BYTES - 1, made_at) &&
           row_time_parse(made_at, &out->made_at) &&
           read_exactly(statement, READER_SQL_KEY_ID, DIGEST_HEX_BYTES - 1, out->key_id) &&
           digest_is_hex(out->key_id) &&
           read_bytes(statement, READER_SQL_SIGNATURE, sizeof(out->signature), out->signature);
}

static int sqlite_next_checkpoint(struct reader *base, struct checkpoint *out)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    int rc = next_row(reader);
    if (rc != 0)
        return rc;
    if (!read_checkpoint(reader->rows, out))
        return READER_UNREADABLE;
    if (!read_bytes(reader->rows, READER_SQL_PUBLIC_KEY, sizeof(out->public_key), out->public_key))
        memset(out->public_key, 0, sizeof(out->public_key));
    return 0;
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static int put_value(struct chain_row *row, sqlite3_value *value)
{
    const char *text;
    switch (sqlite3_value_type(value)) {
    case SQLITE_NULL:
        return chain_row_null(row);
    case SQLITE_INTEGER:
        /* A time is text here; an integer in its place would be another text. */
        return chain_row_form(row) == ROW_TIME ? chain_row_wrong(row)
                                               : chain_row_integer(row, sqlite3_value_int64(value));
    case SQLITE_TEXT:
        text = (const char *)sqlite3_value_text(value);
        return text ? chain_row_text(row, text, (size_t)sqlite3_value_bytes(value)) : -ENOMEM;
    default:
        return chain_row_wrong(row);
    }
}

/* The next row of one table. 0 also at its end; 2, -ENOMEM. */
static int advance(struct sqlite_reader *reader, struct source *source)
{
    int rc = sqlite3_step(source->statement);
    if (rc == SQLITE_DONE) {
        (void)sqlite3_finalize(source->statement);
        source->statement = NULL;
        return 0;
    }
    if (rc != SQLITE_ROW)
        return say(reader, 2);
    chain_row_begin(&source->row, source->layout);
    rc = 0;
    for (size_t i = 0; i < source->layout->count && rc == 0; i++)
        rc = put_value(&source->row, sqlite3_column_value(source->statement, (int)i));
    return rc;
}

static int start_source(struct sqlite_reader *reader, struct source *source, const char *writer)
{
    AR_AUTO_FREE char *names = row_names(source->layout);
    AR_AUTO_FREE char *sql = NULL;
    if (!names || asprintf(&sql, "SELECT %s FROM %s%s ORDER BY writer, seq", names,
                           source->layout->table, writer ? " WHERE writer = ?1" : "") < 0)
        return -ENOMEM;
    if (sqlite3_prepare_v2(reader->db, sql, -1, &source->statement, NULL) != SQLITE_OK ||
        (writer &&
         sqlite3_bind_text(source->statement, 1, writer, -1, SQLITE_TRANSIENT) != SQLITE_OK))
        return say(reader, 1);
    return advance(reader, source);
}

static int sqlite_walk(struct reader *base, const char *writer)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    int rc = 0;
    end_query(reader);
    reader->sources[0].layout = &record_layout;
    reader->sources[1].layout = &chain_event_layout;
    for (size_t i = 0; i < AR_COUNT(reader->sources) && rc == 0; i++)
        rc = start_source(reader, &reader->sources[i], writer);
    return rc == 2 ? 1 : rc;
}

/* Which of two rows comes first; one that cannot be placed is told of at once. */
static bool comes_first(const struct source *one, const struct source *other)
{
    if (!one->statement || !other->statement)
        return one->statement != NULL;
    int order = strcmp(one->row.writer, other->row.writer);
    return order < 0 || (order == 0 && one->row.seq <= other->row.seq);
}

static int sqlite_walk_next(struct reader *base, const struct chain_row **out)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    int rc = reader->given ? advance(reader, reader->given) : 0;
    reader->given = NULL;
    if (rc != 0)
        return rc;
    struct source *next = comes_first(&reader->sources[0], &reader->sources[1])
                              ? &reader->sources[0]
                              : &reader->sources[1];
    if (!next->statement)
        return 1;
    reader->given = next;
    *out = &next->row;
    return 0;
}

/* ---- heads and writers -------------------------------------------------------------------------- */

static int sqlite_head(struct reader *base, const char *writer, int64_t *seq,
                       char hash[DIGEST_HEX_BYTES])
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(reader->db, "SELECT seq, hash FROM writers WHERE writer = ?1", -1,
                                &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 1, writer, -1, SQLITE_TRANSIENT);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 1);
        *seq = sqlite3_column_int64(statement, 0);
        (void)snprintf(hash, DIGEST_HEX_BYTES, "%s", text ? text : "");
    }
    (void)sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? 0 : rc == SQLITE_DONE ? 1 : say(reader, 2);
}

static int64_t sqlite_estimate(struct reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    sqlite3_stmt *statement = NULL;
    int64_t rows = -1;
    if (sqlite3_prepare_v2(reader->db,
                           "SELECT (SELECT coalesce(max(rowid), 0) FROM runs) + "
                           "(SELECT coalesce(max(rowid), 0) FROM events)",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        rows = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return rows;
}

static int sqlite_writers(struct reader *base, struct text_list *writers)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(reader->db, READER_SQL_WRITERS(""), -1, &statement, NULL);
    int added = 0;
    while (added == 0 && (rc == SQLITE_OK || rc == SQLITE_ROW)) {
        rc = sqlite3_step(statement);
        const char *writer =
            rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        if (writer)
            added = text_list_add(writers, writer);
    }
    (void)sqlite3_finalize(statement);
    if (added < 0)
        return added;
    return rc == SQLITE_DONE ? 0 : say(reader, 2);
}

static void sqlite_close(struct reader *base)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    end_query(reader);
    for (size_t i = 0; i < AR_COUNT(reader->sources); i++)
        chain_row_free(&reader->sources[i].row);
    (void)sqlite3_close(reader->db);
    free(reader);
}

static const struct reader_ops sqlite_reader_ops = {
    .close = sqlite_close,
    .freeze = sqlite_freeze,
    .thaw = sqlite_thaw,
    .query = sqlite_query,
    .next = sqlite_next,
    .next_checkpoint = sqlite_next_checkpoint,
    .walk = sqlite_walk,
    .walk_next = sqlite_walk_next,
    .head = sqlite_head,
    .estimate = sqlite_estimate,
    .writers = sqlite_writers,
};

int sqlite_reader_open(const char *path, struct reader **out, char message[READER_MESSAGE_BYTES])
{
    struct sqlite_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return -ENOMEM;
    reader->reader.ops = &sqlite_reader_ops;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(path, &reader->db, flags, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(reader->db, LOCK_WAIT_MS) == SQLITE_OK &&
        sqlite3_exec(reader->db,
                     "PRAGMA query_only = ON; PRAGMA trusted_schema = OFF;"
                     "SELECT 1 FROM migrations LIMIT 1",
                     NULL, NULL, NULL) == SQLITE_OK) {
        *out = &reader->reader;
        return 0;
    }
    (void)say(reader, 1);
    (void)snprintf(message, READER_MESSAGE_BYTES, "%s", reader->reader.message);
    sqlite_close(&reader->reader);
    return 1;
}

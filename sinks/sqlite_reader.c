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

static const struct reader_sql_dialect dialect = {
    .table = "runs", .text = "?%zu", .uuid = "?%zu", .time = "?%zu"};

struct sqlite_reader {
    struct reader reader;
    sqlite3 *db;
    sqlite3_stmt *rows; /* of the query that is going on, or NULL */
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

static int sqlite_query(struct reader *base, const struct reader_filter *filter,
                        enum reader_order order)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    AR_CLEANUP(reader_sql_free) struct reader_sql sql;
    end_query(reader);
    int rc = reader_sql_build(&dialect, filter, order, &sql);
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

static int sqlite_next(struct reader *base, struct record **out)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    if (!reader->rows)
        return 1;
    int rc = sqlite3_step(reader->rows);
    if (rc == SQLITE_ROW) {
        rc = sqlite_row_read_record(reader->rows, out);
        return rc == 1 ? READER_UNREADABLE : rc;
    }
    if (rc != SQLITE_DONE)
        return say(reader, 2);
    end_query(reader);
    return 1;
}

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
    if (sqlite3_prepare_v2(reader->db, "SELECT coalesce(max(rowid), 0) FROM runs", -1, &statement,
                           NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        rows = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return rows;
}

static int sqlite_writers(struct reader *base, struct text_list *writers)
{
    struct sqlite_reader *reader = (struct sqlite_reader *)base;
    sqlite3_stmt *statement = NULL;
    char sql[1024];
    (void)snprintf(sql, sizeof(sql), READER_SQL_WRITERS, "runs", "runs", "writers");
    int rc = sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL);
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
    (void)sqlite3_close(reader->db);
    free(reader);
}

static const struct reader_ops sqlite_reader_ops = {
    .close = sqlite_close,
    .freeze = sqlite_freeze,
    .thaw = sqlite_thaw,
    .query = sqlite_query,
    .next = sqlite_next,
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
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE;
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

/*
 * sqlite_row.c - see sqlite_row.h.
 *
 * What is read is never trusted to have been written by us: a column of another storage class than
 * ours, or a text with a NUL inside, is a row that cannot be read, never a value that is guessed.
 */
#include "sinks/sqlite_row.h"

#include "sinks/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *sqlite_row_insert_sql(void)
{
    AR_AUTO_FREE char *names = columns_names();
    char marks[COLUMNS_COUNT * 2];
    char *sql;
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        marks[i * 2] = '?';
        marks[i * 2 + 1] = ',';
    }
    marks[sizeof(marks) - 1] = '\0';
    if (!names || asprintf(&sql, "INSERT INTO runs (%s) VALUES (%s)", names, marks) < 0)
        return NULL;
    return sql;
}

static int bind_column(sqlite3_stmt *statement, size_t column, const struct record *record)
{
    int at = (int)column + 1;
    struct column_value value = columns_value(record, column);
    char time[RECORD_TIME_BYTES];
    if (value.is_null)
        return sqlite3_bind_null(statement, at);
    switch (columns_table[column].type) {
    case COLUMN_UUID:
    case COLUMN_TEXT:
    case COLUMN_JSON:
        return sqlite3_bind_text(statement, at, value.text, -1, SQLITE_STATIC);
    case COLUMN_INTEGER:
    case COLUMN_BOOL:
        return sqlite3_bind_int64(statement, at, value.integer);
    case COLUMN_TIME:
        record_time_text(value.integer, time);
        return sqlite3_bind_text(statement, at, time, -1, SQLITE_TRANSIENT);
    }
    return SQLITE_MISUSE;
}

int sqlite_row_bind(sqlite3_stmt *statement, const struct record *record)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < COLUMNS_COUNT && rc == SQLITE_OK; i++)
        rc = bind_column(statement, i, record);
    return rc;
}

static int read_text(sqlite3_stmt *statement, int at, const char **text)
{
    if (sqlite3_column_type(statement, at) != SQLITE_TEXT)
        return 1;
    *text = (const char *)sqlite3_column_text(statement, at);
    if (!*text)
        return -ENOMEM;
    return strlen(*text) == (size_t)sqlite3_column_bytes(statement, at) ? 0 : 1;
}

static int read_column(sqlite3_stmt *statement, size_t column, struct record *record)
{
    int at = (int)column;
    char number[24];
    const char *text = number;
    if (sqlite3_column_type(statement, at) == SQLITE_NULL)
        return record_set(record, column, NULL);
    switch (columns_table[column].type) {
    case COLUMN_INTEGER:
    case COLUMN_BOOL: {
        if (sqlite3_column_type(statement, at) != SQLITE_INTEGER)
            return 1;
        int64_t value = sqlite3_column_int64(statement, at);
        if (value == RECORD_NULL)
            return 1; /* in a struct it would mean null, which it is not */
        if (columns_table[column].type == COLUMN_INTEGER)
            (void)snprintf(number, sizeof(number), "%" PRId64, value);
        else if (value == 0 || value == 1)
            text = value ? "true" : "false";
        else
            return 1;
        break;
    }
    default: {
        int rc = read_text(statement, at, &text);
        if (rc != 0)
            return rc;
    }
    }
    return record_set(record, column, text);
}

int sqlite_row_read(sqlite3_stmt *statement, struct record **out)
{
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    if (!record)
        return -ENOMEM;
    for (size_t i = 0; i < COLUMNS_COUNT; i++) {
        int rc = read_column(statement, i, record);
        if (rc != 0)
            return rc;
    }
    *out = AR_TAKE(record);
    return 0;
}

/*
 * sqlite_row.c - see sqlite_row.h.
 *
 * What is read is never trusted to have been written by us: a column of another storage class than
 * ours, or a text with a NUL inside, is a row that cannot be read, never a value that is guessed.
 */
#include "sinks/sqlite_row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *sqlite_row_insert_sql(const struct row_layout *layout)
{
    AR_AUTO_FREE char *names = row_names(layout);
    char marks[ROW_MAX_COLUMNS * 2];
    char *sql;
    for (size_t i = 0; i < layout->count; i++) {
        marks[i * 2] = '?';
        marks[i * 2 + 1] = i + 1 < layout->count ? ',' : '\0';
    }
    if (!names ||
        asprintf(&sql, "INSERT INTO %s (%s) VALUES (%s)", layout->table, names, marks) < 0)
        return NULL;
    return sql;
}

static int bind_column(sqlite3_stmt *statement, const struct row_layout *layout, const void *row,
                       size_t column)
{
    int at = (int)column + 1;
    char time[ROW_TIME_BYTES];
    struct row_value value = row_value(layout, row, column);
    if (value.is_null)
        return sqlite3_bind_null(statement, at);
    if (value.text)
        return sqlite3_bind_text(statement, at, value.text, -1, SQLITE_STATIC);
    if (layout->columns[column].form != ROW_TIME)
        return sqlite3_bind_int64(statement, at, value.integer);
    row_time_text(value.integer, time);
    return sqlite3_bind_text(statement, at, time, -1, SQLITE_TRANSIENT);
}

int sqlite_row_bind(sqlite3_stmt *statement, const struct row_layout *layout, const void *row)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < layout->count && rc == SQLITE_OK; i++)
        rc = bind_column(statement, layout, row, i);
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

/* The canonical text of an integer or a bool in scratch; 1 when it is neither. */
static int read_number(sqlite3_stmt *statement, int at, enum row_form form,
                       char scratch[ROW_SCRATCH_BYTES])
{
    if (sqlite3_column_type(statement, at) != SQLITE_INTEGER)
        return 1;
    int64_t value = sqlite3_column_int64(statement, at);
    if (form == ROW_BOOL && value != 0 && value != 1)
        return 1;
    if (value == ROW_NULL)
        return 1; /* in a struct it would mean null, which it is not */
    if (form == ROW_BOOL)
        (void)snprintf(scratch, ROW_SCRATCH_BYTES, "%s", value ? "true" : "false");
    else
        (void)snprintf(scratch, ROW_SCRATCH_BYTES, "%" PRId64, value);
    return 0;
}

static int read_column(sqlite3_stmt *statement, const struct row_layout *layout, void *row,
                       size_t column)
{
    int at = (int)column;
    enum row_form form = layout->columns[column].form;
    char scratch[ROW_SCRATCH_BYTES];
    const char *text = scratch;
    if (sqlite3_column_type(statement, at) == SQLITE_NULL)
        return row_set(layout, row, column, NULL);
    int rc = form == ROW_INTEGER || form == ROW_BOOL ? read_number(statement, at, form, scratch)
                                                     : read_text(statement, at, &text);
    return rc == 0 ? row_set(layout, row, column, text) : rc;
}

int sqlite_row_read(sqlite3_stmt *statement, const struct row_layout *layout, void *row)
{
    for (size_t i = 0; i < layout->count; i++) {
        int rc = read_column(statement, layout, row, i);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int sqlite_row_read_record(sqlite3_stmt *statement, struct record **out)
{
    AR_CLEANUP(record_cleanup) struct record *record = record_new();
    if (!record)
        return -ENOMEM;
    int rc = sqlite_row_read(statement, &record_layout, record);
    if (rc == 0)
        *out = AR_TAKE(record);
    return rc;
}

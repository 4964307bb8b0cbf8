/*
 * table.c - rows for people, in columns that fit the terminal.
 *
 * A cell is kept as its escaped text and its style. Widths only ever grow from one batch to the
 * next, so that a long listing stays one table.
 */
#include "cli/table.h"

#include <string.h>

struct kept_cell {
    char *text; /* escaped, owned */
    enum terminal_style style;
};

struct table {
    const struct table_column *columns;
    size_t count;
    const struct terminal *terminal;
    struct kept_cell *cells; /* TABLE_BATCH rows of count cells */
    size_t rows;
    size_t wanted[TABLE_MAX_COLUMNS];
    bool titled;
};

int table_new(const struct table_column *columns, size_t count, const struct terminal *terminal,
              struct table **out)
{
    if (count == 0 || count > TABLE_MAX_COLUMNS)
        return -E2BIG;
    struct table *table = calloc(1, sizeof(*table));
    if (!table)
        return -ENOMEM;
    table->columns = columns;
    table->count = count;
    table->terminal = terminal;
    for (size_t i = 0; i < count; i++)
        table->wanted[i] = terminal_columns(columns[i].title);
    table->cells = calloc(count * TABLE_BATCH, sizeof(*table->cells));
    if (!table->cells) {
        table_free(table);
        return -ENOMEM;
    }
    *out = table;
    return 0;
}

static void drop_rows(struct table *table)
{
    for (size_t i = 0; i < table->rows * table->count; i++)
        free(table->cells[i].text);
    table->rows = 0;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    drop_rows(table);
    free(table->cells);
    free(table);
}

static size_t total_of(const size_t *widths, size_t count)
{
    size_t total = 0, columns = 0;
    for (size_t i = 0; i < count; i++) {
        total += widths[i];
        columns += widths[i] > 0;
    }
    return columns ? total + (columns - 1) * TABLE_GAP : 0;
}

/* Takes so much from the column that has most to give; false when none has. */
static bool shrink_widest(const struct table_column *columns, size_t count, size_t excess,
                          size_t *widths)
{
    size_t best = count, most = 0;
    for (size_t i = 0; i < count; i++) {
        if (columns[i].minimum == 0 || widths[i] <= columns[i].minimum)
            continue;
        if (widths[i] - columns[i].minimum > most) {
            most = widths[i] - columns[i].minimum;
            best = i;
        }
    }
    if (best == count)
        return false;
    widths[best] -= excess < most ? excess : most;
    return true;
}

static bool drop_column(const struct table_column *columns, size_t count, size_t *widths)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++)
        if (widths[i] > 0 && columns[i].rank > 0 &&
            (best == count || columns[i].rank > columns[best].rank))
            best = i;
    if (best == count)
        return false;
    widths[best] = 0;
    return true;
}

void table_layout(const struct table_column *columns, size_t count, size_t total, size_t *widths)
{
    size_t wanted[TABLE_MAX_COLUMNS];
    if (total == 0)
        return;
    for (size_t i = 0; i < count && i < TABLE_MAX_COLUMNS; i++)
        wanted[i] = widths[i];
    for (;;) {
        /* each round from the wish: what a dropped column gives back may save another's text */
        for (size_t i = 0; i < count; i++)
            if (widths[i] > 0)
                widths[i] = wanted[i];
        size_t used = total_of(widths, count);
        while (used > total && shrink_widest(columns, count, used - total, widths))
            used = total_of(widths, count);
        if (used <= total || !drop_column(columns, count, widths))
            return;
    }
}

int table_add(struct table *table, const struct table_cell *cells)
{
    if (table->rows == TABLE_BATCH)
        table_flush(table);
    struct kept_cell *row = table->cells + table->rows * table->count;
    for (size_t i = 0; i < table->count; i++) {
        const char *text = cells[i].text ? cells[i].text : "";
        row[i].style = cells[i].style;
        row[i].text = terminal_escape(text, strlen(text));
        if (!row[i].text) {
            while (i-- > 0)
                free(row[i].text);
            return -ENOMEM;
        }
        size_t columns = terminal_columns(row[i].text);
        if (columns > table->wanted[i])
            table->wanted[i] = columns;
    }
    table->rows++;
    return 0;
}

static void print_spaces(FILE *stream, size_t count)
{
    (void)fprintf(stream, "%*s", (int)count, "");
}

/* last: nothing stands behind it, so no spaces at the end of a line. */
static void print_cell(const struct terminal *terminal, const char *text, enum terminal_style style,
                       size_t width, bool right, bool last)
{
    const char *mark = terminal->utf8 ? "\xe2\x80\xa6" : "~";
    size_t columns = terminal_columns(text);
    bool cut = columns > width;
    size_t bytes = cut ? terminal_fit(text, width - 1) : strlen(text);
    size_t padding = cut ? 0 : width - columns;
    if (right)
        print_spaces(terminal->stream, padding);
    (void)fprintf(terminal->stream, "%s%.*s%s%s", terminal_begin(terminal, style), (int)bytes, text,
                  cut ? mark : "", terminal_end(terminal, style));
    if (!right && !last)
        print_spaces(terminal->stream, padding);
}

static size_t last_column(const size_t *widths, size_t count)
{
    size_t last = 0;
    for (size_t i = 0; i < count; i++)
        if (widths[i] > 0)
            last = i;
    return last;
}

/* cells NULL: the titles. */
static void print_row(const struct table *table, const struct kept_cell *cells,
                      const size_t *widths)
{
    size_t last = last_column(widths, table->count);
    FILE *stream = table->terminal->stream;
    for (size_t i = 0; i <= last; i++) {
        if (widths[i] == 0)
            continue;
        const char *text = cells ? cells[i].text : table->columns[i].title;
        enum terminal_style style = cells ? cells[i].style : TERMINAL_DIM;
        print_cell(table->terminal, text, style, widths[i], table->columns[i].right, i == last);
        if (i != last)
            print_spaces(stream, TABLE_GAP);
    }
    (void)fputc('\n', stream);
}

void table_flush(struct table *table)
{
    size_t widths[TABLE_MAX_COLUMNS];
    memcpy(widths, table->wanted, sizeof(widths));
    table_layout(table->columns, table->count, table->terminal->width, widths);
    if (!table->titled)
        print_row(table, NULL, widths);
    table->titled = true;
    for (size_t i = 0; i < table->rows; i++)
        print_row(table, table->cells + i * table->count, widths);
    drop_rows(table);
}

/*
 * table.h - rows for people, in columns that fit the terminal.
 *
 * Cells are foreign text until proven otherwise: they are escaped when they are added. Where the
 * terminal is too narrow, columns first shrink to their minimum (an ellipsis marks the cut) and
 * then the one with the highest rank goes, until it fits; away from a terminal nothing is cut. At
 * most TABLE_BATCH rows are held in memory: then they are printed and the widths stay.
 */
#ifndef AUDITRUN_CLI_TABLE_H
#define AUDITRUN_CLI_TABLE_H

#include "cli/terminal.h"

#define TABLE_MAX_COLUMNS 16
#define TABLE_BATCH       500
#define TABLE_GAP         2 /* columns between two columns */

struct table_column {
    const char *title;
    bool right;     /* aligned to the right */
    size_t minimum; /* shrinks to this; 0: never shrinks */
    int rank;       /* 0: never goes; the highest goes first */
};

struct table_cell {
    const char *text; /* NULL: empty; copied */
    enum terminal_style style;
};

struct table;

/* columns and terminal are borrowed. 0 with *out owned, -ENOMEM, -E2BIG. */
int table_new(const struct table_column *columns, size_t count, const struct terminal *terminal,
              struct table **out) AR_MUST_CHECK;
void table_free(struct table *table);
static inline void table_cleanup(struct table **table)
{
    table_free(*table);
}

/* One cell a column. 0 or -ENOMEM. */
int table_add(struct table *table, const struct table_cell *cells) AR_MUST_CHECK;
/* Prints what was added since the last time; the titles before the first row. */
void table_flush(struct table *table);

/* The layout alone: widths[] comes with what each column would like to have and leaves with what it
 * gets, 0 for a column that goes. total 0: no limit. */
void table_layout(const struct table_column *columns, size_t count, size_t total, size_t *widths);

#endif

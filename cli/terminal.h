/*
 * terminal.h - colors, widths, and foreign text that must not drive a terminal.
 *
 * Colors only where a person looks at a terminal that has them: the stream is a terminal, NO_COLOR
 * is unset or empty (https://no-color.org), TERM is not "dumb". Text that somebody else wrote
 * (company, actor, output of code) may hold escape sequences or characters that turn the direction
 * of writing; it is shown through terminal_escape() or terminal_write().
 */
#ifndef AUDITRUN_CLI_TERMINAL_H
#define AUDITRUN_CLI_TERMINAL_H

#include "protocol/base.h"

#include <stdio.h>

enum terminal_style {
    TERMINAL_PLAIN,
    TERMINAL_GOOD,
    TERMINAL_BAD,
    TERMINAL_WARN,
    TERMINAL_DIM,
    TERMINAL_BOLD,
    TERMINAL_STYLE_COUNT
};

struct terminal {
    FILE *stream; /* borrowed */
    bool is_terminal;
    bool color;
    bool utf8;    /* may we print "…" ourselves? */
    size_t width; /* columns; 0: no limit (not a terminal) */
};

/* Looks at the stream and the environment (NO_COLOR, TERM, COLUMNS). */
void terminal_open(struct terminal *terminal, FILE *stream);

/* The sequences around styled text; "" without colors and for TERMINAL_PLAIN. */
const char *terminal_begin(const struct terminal *terminal, enum terminal_style style);
const char *terminal_end(const struct terminal *terminal, enum terminal_style style);

/* text with every control character, direction mark and byte that is not UTF-8 made visible as
 * \xNN or \u{N}; a backslash stays as it is. malloc'd; NULL when out of memory. */
char *terminal_escape(const char *text, size_t length) AR_MUST_CHECK;

/* Columns that escaped text takes. */
size_t terminal_columns(const char *text);

/* Bytes of escaped text that fit into so many columns. */
size_t terminal_fit(const char *text, size_t columns);

/* Writes foreign bytes: as they are when it is not a terminal or raw is set, otherwise escaped save
 * newline and tab. 0 or -errno of the stream, -ENOMEM. */
int terminal_write(const struct terminal *terminal, const char *data, size_t length,
                   bool raw) AR_MUST_CHECK;

#endif

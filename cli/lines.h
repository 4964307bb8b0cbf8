/*
 * lines.h - a big text file, line by line: one line is in memory at a time, and a limit holds it.
 */
#ifndef AUDITRUN_CLI_LINES_H
#define AUDITRUN_CLI_LINES_H

#include "protocol/base.h"

#include <stdio.h>

#define LINES_MAX_BYTES ((size_t)32 << 20)

/* Zeroed is closed; lines_close(). */
struct lines {
    FILE *stream;
    char *text; /* of the last line, without its newline, NUL-terminated */
    size_t length, capacity;
    int64_t number; /* of the last line, from 1 */
    int64_t offset; /* where the line after it begins, in bytes */
};

/* "-": standard input. 0, -errno. */
int lines_open(const char *path, struct lines *lines) AR_MUST_CHECK;
void lines_close(struct lines *lines);

/* 0 with the next line; 1 at the end; LINES_TORN: what is left has no newline (text and length are
 * set); LINES_TOO_LONG; -errno. */
int lines_next(struct lines *lines) AR_MUST_CHECK;
#define LINES_TORN     2
#define LINES_TOO_LONG 3

#endif

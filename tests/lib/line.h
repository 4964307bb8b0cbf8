/*
 * line.h - one connection to PostgreSQL in a loop of its own, for tests of how it is made and lost.
 *
 * All of these end the test when something else comes than is asked for, or nothing.
 */
#ifndef AUDITRUN_TESTS_LIB_LINE_H
#define AUDITRUN_TESTS_LIB_LINE_H

#include "sinks/postgres_conn.h"

struct line {
    struct event_base *base;
    struct postgres_conn *conn;
    bool done, is_ready;
    unsigned lost;
    char value[64]; /* of the last result */
};

/* Begins to connect. */
void line_open(struct line *line, const char *conninfo);
void line_close(struct line *line);
/* Runs the loop until the connection is ready, is lost, or has an answer. */
void line_wait(struct line *line);
/* The first value of the answer. */
const char *line_ask(struct line *line, const char *sql);

/* A text that is made as by printf(); the caller's. */
char *line_text(const char *format, ...) AR_PRINTF(1, 2);

/* Connects in the first round, or has this problem after it (see postgres_problem.h). Returns how
 * many ms that took. Frees the connection string. */
int64_t line_expect_ready(char *conninfo);
int64_t line_expect_problem(char *conninfo, const char *problem);

#endif

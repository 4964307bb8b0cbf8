/*
 * postgres_problem.h - why a server of PostgreSQL does not serve, as one word of a closed list.
 *
 * What libpq and servers say is neither ours nor stable, and may hold names that do not belong into
 * a log; a word of this list is all that leaves the connection.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_PROBLEM_H
#define AUDITRUN_SINKS_POSTGRES_PROBLEM_H

#include "protocol/base.h"

#include <libpq-fe.h>

/* In the order of what an operator wants to hear about: of several hosts that fail, the one with
 * the highest problem is told of. docs/ledger.md says what each means. */
enum postgres_problem {
    POSTGRES_FINE,
    POSTGRES_READ_ONLY,
    POSTGRES_UNKNOWN_NAME,
    POSTGRES_UNREACHABLE,
    POSTGRES_TIMED_OUT,
    POSTGRES_LOST,
    POSTGRES_UNAVAILABLE,
    POSTGRES_TOO_MANY,
    POSTGRES_REFUSED,
    POSTGRES_FULL,
    POSTGRES_SCHEMA,
    POSTGRES_PRIVILEGE,
    POSTGRES_NO_DATABASE,
    POSTGRES_NO_PASSWORD,
    POSTGRES_AUTHENTICATION,
    POSTGRES_TLS,
    POSTGRES_TLS_FILE,
    POSTGRES_SETTINGS,
    POSTGRES_PROBLEMS
};

/* "fine", "unreachable", "tls_file", ... */
const char *postgres_problem_word(enum postgres_problem problem);

/* Of an error that a server gave: its SQLSTATE, which may be NULL. */
enum postgres_problem postgres_problem_of_state(const char *state);

/* Of a connection that could not be made, from libpq's message. It has to be in the C locale, and
 * the connection's verbosity PQERRORS_SQLSTATE; last: what PQstatus() said before it failed. */
enum postgres_problem postgres_problem_of_message(const char *message, ConnStatusType last);

#endif

/*
 * pair.h - two PostgreSQL servers for a test: a primary, and its standby, without which nothing is
 * committed.
 *
 * Each has a directory and a socket of its own. Which of the two is the primary changes with a
 * promotion; first and second stay who they are.
 */
#ifndef AUDITRUN_TESTS_LIB_PAIR_H
#define AUDITRUN_TESTS_LIB_PAIR_H

#include "tests/lib/postgres.h"

enum { PAIR_FIRST, PAIR_SECOND, PAIR_SERVERS };

struct pair {
    struct postgres_server *servers[PAIR_SERVERS];
};

/* The first is the primary, the second its synchronous standby. False, with the reason on the
 * standard error, when that is not possible; pair_end() in any case. */
bool pair_begin(struct pair *pair) AR_MUST_CHECK;
/* The same, the first with a disk of its own (postgres_fill_disk()), also when it is a standby. */
bool pair_begin_with(struct pair *pair, size_t disk_bytes) AR_MUST_CHECK;
void pair_end(struct pair *pair);

/* A connection string with the sockets of both, in this order. */
void pair_url(const struct pair *pair, char url[2 * POSTGRES_URL_BYTES]);
/* The URL of one of them. */
const char *pair_url_of(const struct pair *pair, int which);

/* Stops the standby: from now on no COMMIT on the primary ends. */
void pair_stop_standby(struct pair *pair, int standby);
/* The standby is there again, and commits end. */
bool pair_start_standby(struct pair *pair, int standby) AR_MUST_CHECK;
/* Kills the primary, if it lives, and makes the other one the primary, which commits alone. */
bool pair_fail_over(struct pair *pair, int to) AR_MUST_CHECK;
/* The old primary comes back, read-only, and commits wait for it again. */
bool pair_rejoin(struct pair *pair, int old) AR_MUST_CHECK;

#endif

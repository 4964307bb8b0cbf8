/*
 * postgres_ask.h - questions in the words of SQL: what is sent for an operation, what each result of
 * it must be, and what answer follows.
 *
 * A question goes out in one piece. What writes is a transaction. That of an append is left open: only
 * when each statement has done what it should (postgres_ask_is_good()), its end is sent, alone, so
 * that what went wrong before is certain. Claims that wait are asked about together.
 *
 * Nothing here knows of connections, deadlines or order; that is postgres_line.c.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_ASK_H
#define AUDITRUN_SINKS_POSTGRES_ASK_H

#include "sinks/operation.h"
#include "sinks/postgres_problem.h"
#include "sinks/postgres_row.h"

#define POSTGRES_ASK_MAX_STATEMENTS 6
#define POSTGRES_ASK_MAX_CLAIMS     100 /* in one transaction */

struct postgres_ask {
    struct postgres_rows records, events, keys; /* memory is kept */
    struct postgres_types types;                /* of the connection; set before rows are sent */
    /* Of what is asked now: */
    struct operation_list *operations;            /* one, or several claims */
    size_t results;                               /* that have come */
    size_t statements;                            /* that were sent */
    size_t expected[POSTGRES_ASK_MAX_STATEMENTS]; /* rows that each must change */
    enum postgres_problem problem;                /* that a probe has told of */
    bool failed; /* a statement failed, or did not do what it should */
};

void postgres_ask_free(struct postgres_ask *ask);

/* May this one be asked together with the ones that are there? */
bool postgres_ask_joins(const struct operation_list *operations, size_t count,
                        const struct operation *next);

/* Makes ready what is to be sent for the operations (at least one): 0; 1 when a row cannot be sent,
 * and the answer says so; -ENOMEM. */
int postgres_ask_begin(struct postgres_ask *ask, struct operation_list *operations) AR_MUST_CHECK;
/* Queues the statements; false when libpq cannot. */
bool postgres_ask_send(struct postgres_ask *ask, PGconn *pg) AR_MUST_CHECK;

/* Takes the next result, which is no failure. warned: the server has warned since it was asked. */
void postgres_ask_take(struct postgres_ask *ask, const PGresult *result, bool warned);
/* The same for a statement that failed: true when the connection can be used all the same. */
bool postgres_ask_take_error(struct postgres_ask *ask, const PGresult *result);
bool postgres_ask_is_good(const struct postgres_ask *ask);

/* How the open transaction of an append that is good must end: "COMMIT", or "ROLLBACK" where all that
 * was asked is answered; NULL: there is none. */
const char *postgres_ask_end(const struct postgres_ask *ask);

#endif

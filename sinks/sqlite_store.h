/*
 * sqlite_store.h - one connection to a SQLite ledger, and the questions of a sink answered with it.
 *
 * Blocking: for a thread of its own. A store opens the file when it is first asked and again after
 * a failure, or when the file was moved away (a commit into an unlinked file would be lost).
 */
#ifndef AUDITRUN_SINKS_SQLITE_STORE_H
#define AUDITRUN_SINKS_SQLITE_STORE_H

#include "sinks/operation.h"

struct sqlite_store;

/* How the loop and the thread agree on who came first: the deadline or the COMMIT. Each side moves
 * it from GATE_OPEN with one atomic exchange. */
enum sqlite_gate {
    GATE_OPEN,
    GATE_COMMITTING, /* the thread: from here on the outcome is not known until it is */
    GATE_ABANDONED   /* the loop: the thread gives up, and rolls back */
};

/* path is copied. 0 with *out owned, -ENOMEM. */
int sqlite_store_new(const char *path, struct sqlite_store **out) AR_MUST_CHECK;
void sqlite_store_free(struct sqlite_store *store);

/* Answers one question; *answer holds the answer of an operation that failed. Waits for a locked
 * database for as long as *gate is open. */
void sqlite_store_ask(struct sqlite_store *store, const struct question *question, int *gate,
                      struct answer *answer);

/* Why the last question could not be answered, in a constant word: "unreachable" (no such file, or it
 * cannot be opened), "locked", "full", "read_only", "schema" (not the newest version), "corrupt",
 * "input_output", "memory", "timed_out", "failed"; "" when it was answered. */
const char *sqlite_store_problem(const struct sqlite_store *store);

#endif

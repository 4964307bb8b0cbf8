/*
 * load.h - many clients with many runs in flight, what each was answered, and whether the ledger says
 * the same.
 *
 * Each run carries its number, so that every row can be told from every other: a row that nobody asked
 * for, two rows of one run, an answer without its row, or with another one, end the test. What a run
 * must be known by then: load_expect_rows() takes it from the answers and the rows alone,
 * load_expect_exactly() from ids that were found in the journal and the ledger before.
 */
#ifndef AUDITRUN_TESTS_LIB_LOAD_H
#define AUDITRUN_TESTS_LIB_LOAD_H

#include "tests/lib/daemon.h"

#define LOAD_MAX_CLIENTS 64

struct load_options {
    const char *name;   /* other than that of every other load on this ledger */
    int clients;        /* at most LOAD_MAX_CLIENTS */
    int in_flight;      /* of each */
    int sleep_ms;       /* what a run takes */
    bool keys;          /* with idempotency keys, so that runs can be asked for again */
    bool at_risk_is_ok; /* a refusal may be told without its record being safe (a full disk) */
};

/* How many were asked for, and what they were answered. */
struct load_counts {
    int asked;
    int told;    /* a result: recorded */
    int kept;    /* an audit failure: will be recorded */
    int at_risk; /* the same of a refusal, if the daemon lives */
    int refused; /* of all of these: did not run */
};

struct load;

/* Runs are asked for on the executor "well" (fake.h). Connects the clients to the daemon, which must
 * serve, and asks for the first runs. */
struct load *load_begin(const struct daemon *daemon, const struct load_options *options);
void load_free(struct load *load);

/* Takes what has been answered, and asks for a new run in the place of each (after a refusal a moment
 * later). */
void load_turn(struct load *load);
/* The daemon has ended: takes what it had answered; the rest was lost. */
void load_end_of_daemon(struct load *load);

/* The same in a thread of its own, whose clients connect again when the daemon has gone, until there is
 * one. Until load_rest() nothing but load_counts() may be called. */
void load_go(struct load *load);
/* No new runs: until each has been answered, or was lost with its daemon. Ends the test when that takes
 * longer than ms. load_go() again goes on. */
void load_rest(struct load *load, int64_t ms);
struct load_counts load_counts(const struct load *load);
/* Goes on until so many more have been answered with a result (or otherwise); ends the test when they are
 * not within ms. While it goes in its thread. */
void load_await_told(const struct load *load, int more, int64_t ms);
void load_await_kept(const struct load *load, int more, int64_t ms);

/* Sets of ids are JSON objects. All runs of the ledger; all that are open in the journal of a daemon that
 * does not run. */
void load_add_rows(json_t *ids, const char *url);
void load_add_journal(json_t *ids, const struct daemon *daemon);
/* After the end of a daemon that had the ledger: there are none. */
void load_expect_nothing_open(const struct daemon *daemon);

/* Waits for the rows: they are exactly these, each once, and who was answered finds what was said, with
 * the late ones being those that were kept. */
void load_expect_exactly(const struct load *load, const char *url, const json_t *ids, int64_t ms);
/* Waits for the rows: each is that of one run that was asked for, each run that was answered has one,
 * which is what was said, and those of ids are there. ids may be NULL. The chains are whole by verify,
 * and in PostgreSQL by SQL as well. Returns how many rows there are. */
size_t load_expect_rows(const struct load *const *loads, size_t count, const char *url,
                        const json_t *ids, int64_t ms);
/* Who was not answered asks again (keys): a row that was there, which must be among the ids, or a run that
 * is one now; it is added to them. */
void load_ask_again(struct load *load, const struct daemon *daemon, json_t *ids);

/* The verdict of auditrun.verify() in SQL must be ok. Nothing for SQLite. */
void load_expect_sql_verify(const char *url);

#endif

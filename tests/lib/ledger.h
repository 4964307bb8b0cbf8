/*
 * ledger.h - a fresh ledger of any kind for a test, with its sink in a loop of its own, and the
 * sink's operations as plain calls that run the loop until they are answered.
 *
 * Each call ends the test when it is called back from within, twice, or not at all.
 */
#ifndef AUDITRUN_TESTS_LIB_LEDGER_H
#define AUDITRUN_TESTS_LIB_LEDGER_H

#include "sinks/sink.h"
#include "sinks/verify.h"
#include "tests/lib/postgres.h"
#include "tests/lib/records.h"

#define LEDGER_DEADLINE_MS 20000

enum ledger_kind { LEDGER_MEMORY, LEDGER_SQLITE, LEDGER_POSTGRES, LEDGER_KINDS };

struct ledger {
    enum ledger_kind kind;
    struct event_base *base;
    struct sink *sink;
    char url[POSTGRES_URL_BYTES]; /* "" in memory */
    char folder[64];              /* of SQLite */
};

/* Ends the test when it cannot be made. server is for LEDGER_POSTGRES. */
void ledger_begin(struct ledger *ledger, enum ledger_kind kind, struct postgres_server *server);
/* Closes the sink and removes what was made. */
void ledger_end(struct ledger *ledger);
/* Closes the sink and opens another on the same store. Not in memory. */
void ledger_reopen(struct ledger *ledger);

/* What came of an append; bad is set with SINK_REFUSED. */
struct ledger_append {
    enum sink_outcome outcome;
    size_t bad;
};
/* The batch follows on the chain as it was before its records: head is that. */
struct ledger_append ledger_append(struct ledger *ledger, const struct sink_head *head,
                                   struct record *const *records, size_t count, int deadline_ms);
/* A batch as it is, also one with events, and an empty one. */
struct ledger_append ledger_append_batch(struct ledger *ledger, const struct sink_batch *batch);
/* Appends so many plain records to the chain, which must work. */
void ledger_grow(struct ledger *ledger, struct records_chain *chain, size_t count);
struct sink_head ledger_chain_head(const struct records_chain *chain);

enum sink_answer ledger_head(struct ledger *ledger, const char *writer, struct sink_head *head);
/* *out is a copy (record_free), or NULL. */
enum sink_answer ledger_find(struct ledger *ledger, const struct sink_key *key,
                             struct record **out);
struct ledger_claim {
    enum sink_claim claim;
    char holder[UUID7_TEXT_BYTES];
    bool same_request;
};
struct ledger_claim ledger_claim(struct ledger *ledger, const char *company, const char *key,
                                 const char *request_sha256, const char *run_id);
bool ledger_probe(struct ledger *ledger, int deadline_ms);
bool ledger_checkpoint(struct ledger *ledger, const struct checkpoint *checkpoint);
bool ledger_maintain(struct ledger *ledger);

/* Statements on the store, past the sink; tables without a schema. False when they are refused. */
bool ledger_sql(const struct ledger *ledger, const char *sql) AR_MUST_CHECK;
/* The same with the triggers out of the way: what only the owner of the store can do. */
bool ledger_tamper(const struct ledger *ledger, const char *sql) AR_MUST_CHECK;
/* The first value of a query; malloc'd, NULL on failure. */
char *ledger_value(const struct ledger *ledger, const char *sql) AR_MUST_CHECK;

/* A fresh ledger with two chains of LEDGER_ROWS rows; chains[0] is that of the lower writer, which
 * comes first in the order of chains. */
#define LEDGER_ROWS 10
void ledger_begin_with_rows(struct ledger *ledger, enum ledger_kind kind,
                            struct postgres_server *server, struct records_chain chains[2]);
/* A reader of it; reader_close(). */
struct reader *ledger_reader(const struct ledger *ledger);
struct verify_result ledger_verify(const struct ledger *ledger);
/* End the test when verify finds anything (else). */
void ledger_expect_sound(const struct ledger *ledger, int64_t rows, int64_t writers);
void ledger_expect_finding(const struct ledger *ledger, enum verify_finding finding,
                           const char *writer, int64_t seq);
/* In PostgreSQL: so many rows have another hash when it is computed in plain SQL. */
void ledger_expect_sql_hash(const struct ledger *ledger, const char *wrong);

/* Runs the loop until *flag is set; ends the test when that takes too long. */
void ledger_wait(struct event_base *base, const bool *flag);

#endif

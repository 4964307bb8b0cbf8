/*
 * ledger.h - the way into the sink: chain, batches, deadlines, and what happens while the sink is
 * away.
 *
 * Rows are appended in the order in which they come. While one batch is at the sink, the next one
 * gathers; a single row waits for nothing. A caller waits for its record until ledger.deadline,
 * then it is told the audit failure, the record is made durable in the journal, and it is appended
 * (late) as soon as the sink is back, once. The daemon's own events go the same way.
 */
#ifndef AUDITRUN_DAEMON_LEDGER_H
#define AUDITRUN_DAEMON_LEDGER_H

#include "daemon/run.h"
#include "sinks/sink.h"

struct ledger;

/* Takes over the sink (also when it fails); appends under the journal's writer. answered is called
 * once, when it is known whether the sink is up or down. 0 with *out owned, or -ENOMEM. */
int ledger_open(struct line *line, struct sink *sink, void (*answered)(void *context, bool up),
                void *context, struct ledger **out) AR_MUST_CHECK;
/* Calls back what is pending: rows that are not stored are kept in the journal first (which must
 * still be there). */
void ledger_free(struct ledger *ledger);
/* Calls settled once, when every row that was given has been stored, or at once when the sink is
 * down. For the end of the daemon. */
void ledger_settle(struct ledger *ledger, void (*settled)(void *context), void *context);

/* Stage: decided -> recorded. Takes over run->record; sets run->place or run->audit. A withdrawn run
 * passes. */
void ledger_stage(struct run *run, run_done_fn *done);

/* Appends a record that a former daemon left behind (takes it over); or an event of it. */
void ledger_append_late(struct ledger *ledger, struct record *record);
void ledger_append_late_event(struct ledger *ledger, struct chain_event *event);
/* Writes an event of the daemon itself into the chain. Takes over the reference to detail (NULL, as
 * jansson says that it is out of memory: the event has no details). */
void ledger_note(struct ledger *ledger, enum event_kind kind, json_t *detail);

/* Known to be down: code that would run now could not be recorded. */
bool ledger_is_down(const struct ledger *ledger);
/* It is up and its head was confirmed by a write: no COMMIT of a former daemon that had begun is still
 * to come, so that a row that is not found now is not there. */
bool ledger_is_certain(const struct ledger *ledger);
const char *ledger_writer(const struct ledger *ledger);
/* The newest place of the chain that is known to be stored; seq 0: none. */
const struct sink_head *ledger_head(const struct ledger *ledger);
/* Rows that are not in the ledger yet. */
size_t ledger_backlog(const struct ledger *ledger);
struct ledger_figures {
    bool up;           /* and its head is known */
    size_t backlog;    /* rows that are not in it yet */
    int64_t oldest_us; /* how long the oldest of them has been waiting; 0: there is none */
    int64_t batches, rows, seq;
};
void ledger_figures(const struct ledger *ledger, struct ledger_figures *out);
/* {"sink", "state", "problem", "backlog", "oldest_ms", "batches", "rows", "seq"}; NULL when out of
 * memory. */
json_t *ledger_status(const struct ledger *ledger) AR_MUST_CHECK;

/* Questions, with the ledger's deadline; see sink.h. */
void ledger_find(struct ledger *ledger, const struct sink_key *key, sink_find_fn *done,
                 void *context);
void ledger_claim(struct ledger *ledger, const char *company, const char *key,
                  const char *request_sha256, const char *run_id, sink_claim_fn *done,
                  void *context);
void ledger_checkpoint(struct ledger *ledger, const struct checkpoint *checkpoint,
                       sink_done_fn *done, void *context);

#endif

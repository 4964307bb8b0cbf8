/*
 * journal.h - the durable local note that a run is about to start, and the records that could not be
 * appended yet.
 *
 * A thread of its own writes and syncs, in groups; the loop never waits for the disk. Whatever it
 * calls back comes from the loop. While the journal cannot be written, no run is dispatched.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_H
#define AUDITRUN_DAEMON_JOURNAL_H

#include "daemon/journal_store.h"
#include "daemon/run.h"

struct journal;

/* Opens the folder, reads what was left, starts the thread. 0 with *out owned; 1 when it must not be
 * used (message, for the operator); -errno. Raises line->ids over every id in the journal. The size
 * limit is that of line->config. */
int journal_open(struct line *line, const char *directory, struct journal **out,
                 char message[JOURNAL_MESSAGE_BYTES]) AR_MUST_CHECK;
/* Finishes what was given to it, syncs, stops the thread. Pending callbacks are made. */
void journal_free(struct journal *journal);

/* The writer's id of this journal. */
const char *journal_writer(const struct journal *journal);
/* Makes another identity from now on (durable before what is noted after it). 0 or -EIO: no random
 * bytes. */
int journal_renew_writer(struct journal *journal) AR_MUST_CHECK;

/* Records that a former daemon left behind, intents without an end and kept ones; each is handed out
 * once and then owned by the caller. NULL when there are no more. */
struct record *journal_next_left(struct journal *journal);
/* The same for texts of one type, JOURNAL_EVENT or JOURNAL_SWITCH: *text is owned by the caller. False
 * when there are no more. */
bool journal_next_left_text(struct journal *journal, enum journal_type type,
                            char id[UUID7_TEXT_BYTES], char **text) AR_MUST_CHECK;
/* The last acknowledged head of the writer that was noted before the opening; false when there is
 * none, or the writer has been renewed since. The note is lazy: the ledger can only be further on. */
bool journal_last_head(const struct journal *journal, int64_t *seq, char hash[DIGEST_HEX_BYTES]);

/* Stage: queued -> noted. Ends the run (refused, overloaded) when the intent cannot be made durable. */
void journal_stage(struct run *run, run_done_fn *done);

/* Makes a record durable that could not be appended; done(context, rc) with 0 or -errno. */
void journal_keep(struct journal *journal, const struct record *record,
                  void (*done)(void *context, int rc), void *context);
/* The same for a text without newlines under an id (JOURNAL_EVENT, JOURNAL_SWITCH), which is settled like
 * a run. */
void journal_keep_text(struct journal *journal, enum journal_type type, const char *id,
                       const char *text, void (*done)(void *context, int rc), void *context);
/* The run's record is in the ledger (or the run was withdrawn). Lazy: losing this note costs a
 * question to the ledger at the next start. */
void journal_settle(struct journal *journal, const char *run_id);
/* The same, and not lazy: done(context, rc) when it is durable. */
void journal_settle_durably(struct journal *journal, const char *id,
                            void (*done)(void *context, int rc), void *context);
/* The ledger has acknowledged this head of the writer's chain. Lazy, and only the newest is written. */
void journal_note_head(struct journal *journal, int64_t seq, const char *hash);

/* As of the last group that was written. */
void journal_figures(struct journal *journal, struct journal_figures *out);
/* {"bytes", "max_bytes", "open_intents", "kept", "events", "oldest_kept_ms" (or null), "full"}: as of
 * the last group that was written; owned. "full": the last run was refused for want of room. */
json_t *journal_status(struct journal *journal) AR_MUST_CHECK;

#endif

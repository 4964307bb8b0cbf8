/*
 * ledger.c - the way into the sink.
 *
 * One batch at a time is at the sink, so the chain has one head and cannot fork by our own doing; the
 * sink's compare-and-set on the head keeps others from forking it. A batch whose COMMIT was lost is
 * neither stored nor failed: it stays as it is, and the head of the chain in the sink tells which. It
 * is sent again unchanged if need be, so that the old and the new attempt cannot both win.
 *
 * Down is a state of this file alone: the sink is probed with growing pauses until it is up again, and
 * then first the head is looked up, then an unknown batch is resolved, then the line moves on.
 */
#include "daemon/ledger.h"

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/journal.h"
#include "daemon/ledger_entry.h"
#include "daemon/log.h"

#include <string.h>

#define LEDGER_RETRY_MIN_MS 50
#define LEDGER_RETRY_MAX_MS 2000

enum ledger_phase {
    LEDGER_IDLE,
    LEDGER_ASKING,    /* a probe or a question for the head is on its way */
    LEDGER_APPENDING, /* a batch is at the sink */
    LEDGER_WAITING    /* down, until the retry timer passes */
};

struct ledger {
    struct line *line;
    struct sink *sink;
    char writer[UUID7_TEXT_BYTES];
    struct sink_head head;
    bool head_known;
    bool down;
    enum ledger_phase phase;
    struct ledger_entries pending;
    size_t pending_count;
    struct ledger_entry *batch[SINK_MAX_BATCH];
    struct record *records[SINK_MAX_BATCH];
    size_t batch_count; /* > 0 and not APPENDING: unknown, to be resolved */
    size_t batch_most;  /* 1 while a row that the sink refuses is looked for */
    struct deadline retry;
    int64_t retry_ms;
    int64_t batches, rows;
    void (*answered)(void *context, bool up);
    void *context;
    bool closing;
};

static void start_batch(struct ledger *ledger);
static void ask_head(struct ledger *ledger);

static int deadline_ms(const struct ledger *ledger)
{
    return (int)ledger->line->config->ledger_deadline_ms;
}

static void tell_answer(struct ledger *ledger, bool up)
{
    void (*answered)(void *, bool) = AR_TAKE(ledger->answered);
    if (answered)
        answered(ledger->context, up);
}

static void go_down(struct ledger *ledger)
{
    if (!ledger->down)
        log_warning("the ledger is down; %zu records wait", ledger_backlog(ledger));
    ledger->down = true;
    ledger->phase = LEDGER_WAITING;
    if (!ledger->closing)
        deadline_start(&ledger->retry, ledger->retry_ms);
    ledger->retry_ms =
        ledger->retry_ms * 2 < LEDGER_RETRY_MAX_MS ? ledger->retry_ms * 2 : LEDGER_RETRY_MAX_MS;
    tell_answer(ledger, false);
}

static void go_on(struct ledger *ledger)
{
    if (ledger->down)
        log_info("the ledger is up again; %zu records to append", ledger_backlog(ledger));
    ledger->down = false;
    ledger->retry_ms = LEDGER_RETRY_MIN_MS;
    ledger->phase = LEDGER_IDLE;
    tell_answer(ledger, true);
    start_batch(ledger);
}

static void probed(void *context, bool up)
{
    struct ledger *ledger = context;
    if (up)
        ask_head(ledger);
    else
        go_down(ledger);
}

static void probe(void *context)
{
    struct ledger *ledger = context;
    ledger->phase = LEDGER_ASKING;
    ledger->sink->ops->probe(ledger->sink, deadline_ms(ledger), probed, ledger);
}

/* ---- the end of a batch ----------------------------------------------------------------------- */

static void batch_stored(struct ledger *ledger)
{
    size_t count = ledger->batch_count;
    const struct record *last = ledger->records[count - 1];
    ledger->head.seq = last->seq;
    memcpy(ledger->head.hash, last->row_hash, sizeof ledger->head.hash);
    ledger->batches++;
    ledger->rows += (int64_t)count;
    ledger->batch_count = 0;
    for (size_t i = 0; i < count; i++)
        ledger_entry_stored(ledger->batch[i]);
}

/* Certainly not stored: the entries go back to the head of the line, in order. */
static void batch_returns(struct ledger *ledger)
{
    for (size_t i = ledger->batch_count; i > 0; i--)
        TAILQ_INSERT_HEAD(&ledger->pending, ledger->batch[i - 1], link);
    ledger->pending_count += ledger->batch_count;
    ledger->batch_count = 0;
}

/* The sink refuses a row as it is: it is set apart, so that it blocks nobody. */
static void set_apart(struct ledger *ledger, size_t bad)
{
    struct ledger_entry *entry = ledger->batch[bad];
    size_t after = ledger->batch_count - bad - 1;
    log_error("run %s: the ledger refuses its record; it is set apart in the journal",
              entry->record->run_id);
    memmove(&ledger->batch[bad], &ledger->batch[bad + 1], after * sizeof(struct ledger_entry *));
    ledger->batch_count--;
    batch_returns(ledger);
    ledger->batch_most = SINK_MAX_BATCH;
    ledger_entry_give_up(entry);
}

static void batch_refused(struct ledger *ledger, size_t bad)
{
    if (ledger->batch_count == 1)
        bad = 0;
    if (bad < ledger->batch_count) {
        set_apart(ledger, bad);
    } else { /* one row at a time until it is found */
        batch_returns(ledger);
        ledger->batch_most = 1;
    }
    go_on(ledger);
}

/* Somebody else has written to this chain: a copy of our state directory, or another machine. Their
 * chain is theirs; we go on under a name of our own. */
static void take_new_writer(struct ledger *ledger)
{
    struct journal *journal = ledger->line->journal;
    if (journal_renew_writer(journal) < 0)
        log_fatal("no random bytes for a writer's id");
    log_error("another daemon writes under our writer's id %s (a copied state directory?): going "
              "on as %s",
              ledger->writer, journal_writer(journal));
    memcpy(ledger->writer, journal_writer(journal), sizeof ledger->writer);
    ledger->head = (struct sink_head){0};
    memcpy(ledger->head.hash, digest_zero, DIGEST_HEX_BYTES);
}

/* ---- what is the head, and what became of the unknown batch ----------------------------------- */

static bool same_head(const struct sink_head *head, int64_t seq, const char *hash)
{
    return head->seq == seq && strcmp(head->hash, hash) == 0;
}

static void send_batch(struct ledger *ledger);

static void first_found(void *context, enum sink_answer answer, const struct record *record)
{
    struct ledger *ledger = context;
    if (answer == SINK_FAILED) {
        go_down(ledger);
        return;
    }
    if (answer == SINK_FOUND && strcmp(record->row_hash, ledger->records[0]->row_hash) == 0)
        batch_stored(ledger);
    else
        batch_returns(ledger);
    take_new_writer(ledger);
    go_on(ledger);
}

/* The head is neither before nor behind the unknown batch. */
static void resolve_by_row(struct ledger *ledger)
{
    struct sink_key key = {.run_id = ledger->records[0]->run_id};
    ledger->sink->ops->find(ledger->sink, &key, deadline_ms(ledger), first_found, ledger);
}

static void resolve_batch(struct ledger *ledger, const struct sink_head *head)
{
    const struct record *last = ledger->records[ledger->batch_count - 1];
    if (same_head(head, last->seq, last->row_hash)) {
        batch_stored(ledger);
        go_on(ledger);
    } else if (same_head(head, ledger->head.seq, ledger->head.hash)) {
        send_batch(ledger);
    } else {
        resolve_by_row(ledger);
    }
}

static void head_answered(void *context, enum sink_answer answer, const struct sink_head *head)
{
    struct ledger *ledger = context;
    if (answer == SINK_FAILED) {
        go_down(ledger);
        return;
    }
    if (ledger->batch_count > 0) {
        resolve_batch(ledger, head);
        return;
    }
    if (!ledger->head_known)
        ledger->head = *head;
    else if (!same_head(head, ledger->head.seq, ledger->head.hash))
        take_new_writer(ledger);
    ledger->head_known = true;
    go_on(ledger);
}

static void ask_head(struct ledger *ledger)
{
    ledger->phase = LEDGER_ASKING;
    ledger->sink->ops->head(ledger->sink, ledger->writer, deadline_ms(ledger), head_answered,
                            ledger);
}

/* ---- appending -------------------------------------------------------------------------------- */

static void appended(void *context, enum sink_outcome outcome, size_t bad)
{
    struct ledger *ledger = context;
    switch (outcome) {
    case SINK_STORED:
        batch_stored(ledger);
        go_on(ledger);
        return;
    case SINK_REFUSED:
        batch_refused(ledger, bad);
        return;
    case SINK_CONFLICT:
        ask_head(ledger);
        return;
    case SINK_NOT_STORED:
        batch_returns(ledger);
        go_down(ledger);
        return;
    default:
        go_down(ledger);
    }
}

static void send_batch(struct ledger *ledger)
{
    struct sink_batch batch = {.writer = ledger->writer,
                               .head = ledger->head,
                               .records = ledger->records,
                               .count = ledger->batch_count};
    ledger->phase = LEDGER_APPENDING;
    ledger->sink->ops->append(ledger->sink, &batch, deadline_ms(ledger), appended, ledger);
}

/* Gives the entry its place behind what is in the batch. */
static void seal(struct ledger *ledger, struct ledger_entry *entry, size_t at)
{
    const struct record *before = at > 0 ? ledger->records[at - 1] : NULL;
    int64_t seq = before ? before->seq + 1 : ledger->head.seq + 1;
    const char *hash = before ? before->row_hash : ledger->head.hash;
    if (record_seal(entry->record, ledger->writer, seq, hash, clock_wall_us(), entry->late) < 0)
        log_fatal("a record cannot be sealed");
    ledger->batch[at] = entry;
    ledger->records[at] = entry->record;
}

static void start_batch(struct ledger *ledger)
{
    struct ledger_entry *entry;
    if (ledger->phase != LEDGER_IDLE || !ledger->head_known || ledger->closing)
        return;
    while (ledger->batch_count < ledger->batch_most && (entry = TAILQ_FIRST(&ledger->pending))) {
        TAILQ_REMOVE(&ledger->pending, entry, link);
        ledger->pending_count--;
        seal(ledger, entry, ledger->batch_count++);
    }
    if (ledger->batch_count > 0)
        send_batch(ledger);
}

static void add_entry(struct ledger *ledger, struct ledger_entry *entry)
{
    TAILQ_INSERT_TAIL(&ledger->pending, entry, link);
    ledger->pending_count++;
    if (entry->run)
        ledger_entry_wait(entry, ledger->down ? 0 : deadline_ms(ledger));
    start_batch(ledger);
}

void ledger_stage(struct run *run, run_done_fn *done)
{
    struct ledger *ledger = run->line->ledger;
    if (run->withdrawn) {
        journal_settle(run->line->journal, run->id);
        done(run);
        return;
    }
    struct ledger_entry *entry = ledger_entry_new(run->line, run->record, run, done);
    if (!entry)
        log_fatal("no memory for the record of a run");
    run->record = NULL;
    add_entry(ledger, entry);
}

void ledger_append_late(struct ledger *ledger, struct record *record)
{
    struct ledger_entry *entry = ledger_entry_new(ledger->line, record, NULL, NULL);
    if (!entry)
        log_fatal("no memory for the record of a run");
    add_entry(ledger, entry);
}

/* ---- questions -------------------------------------------------------------------------------- */

void ledger_find(struct ledger *ledger, const struct sink_key *key, sink_find_fn *done,
                 void *context)
{
    ledger->sink->ops->find(ledger->sink, key, deadline_ms(ledger), done, context);
}

void ledger_claim(struct ledger *ledger, const char *company, const char *key,
                  const char *request_sha256, const char *run_id, sink_claim_fn *done,
                  void *context)
{
    ledger->sink->ops->claim(ledger->sink, company, key, request_sha256, run_id,
                             deadline_ms(ledger), done, context);
}

bool ledger_is_down(const struct ledger *ledger)
{
    return ledger->down;
}

const char *ledger_writer(const struct ledger *ledger)
{
    return ledger->writer;
}

size_t ledger_backlog(const struct ledger *ledger)
{
    return ledger->pending_count + ledger->batch_count;
}

json_t *ledger_status(const struct ledger *ledger)
{
    const char *state = ledger->down ? "down" : ledger->head_known ? "up" : "unknown";
    return json_pack("{s:s, s:s, s:I, s:I, s:I}", "sink", ledger->sink->ops->name, "state", state,
                     "backlog", (json_int_t)ledger_backlog(ledger), "batches",
                     (json_int_t)ledger->batches, "rows", (json_int_t)ledger->rows);
}

/* ---- beginning and end ------------------------------------------------------------------------ */

int ledger_open(struct line *line, struct sink *sink, void (*answered)(void *context, bool up),
                void *context, struct ledger **out)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger) {
        sink_close(sink);
        return -ENOMEM;
    }
    ledger->line = line;
    ledger->sink = sink;
    ledger->answered = answered;
    ledger->context = context;
    ledger->retry_ms = LEDGER_RETRY_MIN_MS;
    ledger->batch_most = SINK_MAX_BATCH;
    TAILQ_INIT(&ledger->pending);
    memcpy(ledger->writer, journal_writer(line->journal), sizeof ledger->writer);
    if (deadline_init(&ledger->retry, line->base, probe, ledger) < 0) {
        ledger_free(ledger);
        return -ENOMEM;
    }
    *out = ledger;
    probe(ledger);
    return 0;
}

void ledger_free(struct ledger *ledger)
{
    struct ledger_entry *entry;
    if (!ledger)
        return;
    ledger->closing = true;
    deadline_stop(&ledger->retry);
    sink_close(ledger->sink);
    batch_returns(ledger);
    while ((entry = TAILQ_FIRST(&ledger->pending))) {
        TAILQ_REMOVE(&ledger->pending, entry, link);
        ledger_entry_give_up(entry);
    }
    deadline_free(&ledger->retry);
    free(ledger);
}

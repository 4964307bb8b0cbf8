/*
 * ledger.c - the way into the sink.
 *
 * One batch at a time is at the sink, so the chain has one head and cannot fork by our own doing; the
 * sink's compare-and-set on the head keeps others from forking it. A batch whose COMMIT was lost is
 * neither stored nor failed: it is frozen, and the head of the chain in the sink tells which. It is
 * sent again unchanged if need be, so that the old and the new attempt cannot both win.
 *
 * Down is a state of this file alone: the sink is probed with growing pauses until it is up again, and
 * then first the head is looked up, then it is confirmed by a write (a head that can be read may still
 * be lost with its server, when its COMMIT waited for a standby in vain), then a frozen batch is
 * resolved, then the line moves on.
 */
#include "daemon/ledger.h"

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/fault.h"
#include "daemon/journal.h"
#include "daemon/ledger_batch.h"
#include "daemon/log.h"
#include "daemon/metrics.h"

#include <string.h>

#define LEDGER_RETRY_MIN_MS 50
#define LEDGER_RETRY_MAX_MS 2000
#define LEDGER_MAINTAIN_MS  (60 * 60 * 1000)

enum ledger_phase {
    LEDGER_IDLE,
    LEDGER_ASKING,    /* a probe, a question for the head or its confirmation is on its way */
    LEDGER_APPENDING, /* a batch is at the sink */
    LEDGER_WAITING    /* down, until the retry timer passes */
};

struct ledger {
    struct line *line;
    struct sink *sink;
    char writer[UUID7_TEXT_BYTES];
    struct sink_head head; /* stored for certain */
    bool head_known;
    bool down;
    enum ledger_phase phase;
    struct ledger_entries pending;
    size_t pending_count;
    struct ledger_batch batch; /* not empty and not APPENDING: to be resolved */
    size_t batch_most;         /* 1 while a row that the sink refuses is looked for */
    struct sink_head found;    /* the sink's head that is being confirmed */
    struct deadline retry, maintain;
    int64_t retry_ms;
    int64_t batches, rows;
    int64_t sent_us; /* monotonic: when the batch was given to the sink first */
    void (*answered)(void *context, bool up);
    void *context;
    void (*settled)(void *context);
    void *settled_context;
    bool closing; /* the sink calls back what it has, and is asked nothing more */
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

static void tell_settled(struct ledger *ledger)
{
    void (*settled)(void *) = AR_TAKE(ledger->settled);
    if (settled)
        settled(ledger->settled_context);
}

static void go_down(struct ledger *ledger)
{
    const char *problem = ledger->sink->ops->problem(ledger->sink);
    if (!ledger->down)
        log_warning("the ledger is down (%s); %zu rows wait", problem[0] ? problem : "no answer",
                    ledger_backlog(ledger));
    ledger->down = true;
    ledger->phase = LEDGER_WAITING;
    deadline_start(&ledger->retry, ledger->retry_ms);
    ledger->retry_ms =
        ledger->retry_ms * 2 < LEDGER_RETRY_MAX_MS ? ledger->retry_ms * 2 : LEDGER_RETRY_MAX_MS;
    tell_answer(ledger, false);
    tell_settled(ledger);
}

static void maintained(void *context, bool done)
{
    struct ledger *ledger = context;
    if (!done && !ledger->closing)
        log_warning("the ledger could not be prepared for the time to come (partitions)");
}

static void maintain(void *context)
{
    struct ledger *ledger = context;
    if (!ledger->down)
        ledger->sink->ops->maintain(ledger->sink, deadline_ms(ledger), maintained, ledger);
    deadline_start(&ledger->maintain, LEDGER_MAINTAIN_MS);
}

static void go_on(struct ledger *ledger)
{
    bool came_up = ledger->down || ledger->answered;
    if (ledger->down)
        log_info("the ledger is up again; %zu rows to append", ledger_backlog(ledger));
    ledger->down = false;
    ledger->retry_ms = LEDGER_RETRY_MIN_MS;
    ledger->phase = LEDGER_IDLE;
    if (came_up)
        maintain(ledger);
    tell_answer(ledger, true);
    start_batch(ledger);
    if (ledger->phase == LEDGER_IDLE)
        tell_settled(ledger);
}

static void probed(void *context, bool up)
{
    struct ledger *ledger = context;
    if (ledger->closing)
        return;
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
    fault_point("commit_answered");
    ledger->head = ledger->batch.behind;
    ledger->batches++;
    ledger->rows += (int64_t)ledger->batch.count;
    metrics_count_batch(ledger->line, ledger->batch.count, clock_monotonic_us() - ledger->sent_us);
    journal_note_head(ledger->line->journal, ledger->head.seq, ledger->head.hash);
    ledger_batch_stored(&ledger->batch);
}

static void batch_returns(struct ledger *ledger)
{
    ledger->pending_count += ledger->batch.count;
    ledger_batch_return(&ledger->batch, &ledger->pending);
}

static void refused_found(void *context, enum sink_answer answer, const struct record *record)
{
    struct ledger_entry *entry = context;
    (void)record;
    if (answer == SINK_FOUND && !entry->run) {
        ledger_entry_stored(entry);
        return;
    }
    log_error("%s %s: the ledger refuses its row; it is set apart in the journal",
              entry->event ? "event" : "run", ledger_entry_id(entry));
    ledger_entry_give_up(entry);
}

/* The sink refuses a row as it is: it is taken out of the line, so that it blocks nobody. One that a
 * former daemon left may have got there by that one's last COMMIT, after it was asked for. */
static void set_apart(struct ledger *ledger, struct ledger_entry *entry)
{
    batch_returns(ledger);
    TAILQ_REMOVE(&ledger->pending, entry, link);
    ledger->pending_count--;
    ledger->batch_most = SINK_MAX_BATCH;
    struct sink_key key = ledger_entry_key(entry);
    ledger->sink->ops->find(ledger->sink, &key, deadline_ms(ledger), refused_found, entry);
}

static void batch_refused(struct ledger *ledger, size_t bad)
{
    struct ledger_entry *entry = ledger_batch_refused(&ledger->batch, bad);
    if (entry) {
        set_apart(ledger, entry);
    } else { /* one row at a time until it is found */
        batch_returns(ledger);
        ledger->batch_most = 1;
    }
    go_on(ledger);
}

/* ---- a chain that is not as we left it -------------------------------------------------------- */

static struct ledger_entry *new_event(struct ledger *ledger, enum event_kind kind, json_t *detail)
{
    char id[UUID7_TEXT_BYTES];
    if (run_make_id(ledger->line, id) < 0)
        log_fatal("no random bytes for an event's id");
    struct chain_event *event = chain_event_new(id, kind, detail, clock_wall_us());
    struct ledger_entry *entry = event ? ledger_entry_new_event(ledger->line, event, false) : NULL;
    if (!entry)
        log_fatal("no memory for an event of the ledger");
    return entry;
}

static void add_first(struct ledger *ledger, struct ledger_entry *entry)
{
    TAILQ_INSERT_HEAD(&ledger->pending, entry, link);
    ledger->pending_count++;
    ledger_entry_wait(entry, deadline_ms(ledger));
}

static json_t *gap_detail(const struct ledger *ledger, const struct sink_head *found)
{
    const struct sink_head *ours = &ledger->head;
    return json_pack("{s:s, s:s, s:I, s:s, s:I, s:s}", "cause",
                     found->seq < ours->seq ? "rows_missing" : "rows_of_another", "writer",
                     ledger->writer, "acknowledged_seq", (json_int_t)ours->seq, "acknowledged_hash",
                     ours->hash, "found_seq", (json_int_t)found->seq, "found_hash", found->hash);
}

/* The chain in the sink does not end where we know that it ended. Either rows are gone (the ledger
 * came back from yesterday), or somebody else writes under our name (a copied state directory). No
 * place in a chain is ever given twice: we go on under a new name, and say so in its first row. */
static void take_new_writer(struct ledger *ledger, const struct sink_head *found)
{
    struct journal *journal = ledger->line->journal;
    json_t *detail = gap_detail(ledger, found);
    if (journal_renew_writer(journal) < 0)
        log_fatal("no random bytes for a writer's id");
    log_error("the ledger's chain of writer %s ends at %lld where %lld was stored: %s; going on as "
              "%s",
              ledger->writer, (long long)found->seq, (long long)ledger->head.seq,
              found->seq < ledger->head.seq ? "rows are missing (an old backup?)"
                                            : "somebody else writes it (a copied state directory?)",
              journal_writer(journal));
    memcpy(ledger->writer, journal_writer(journal), sizeof ledger->writer);
    ledger->head = (struct sink_head){0};
    memcpy(ledger->head.hash, digest_zero, DIGEST_HEX_BYTES);
    add_first(ledger, new_event(ledger, EVENT_GAP, detail));
}

/* ---- what is the head, and what became of the frozen batch ------------------------------------ */

static bool same_head(const struct sink_head *one, const struct sink_head *other)
{
    return one->seq == other->seq && strcmp(one->hash, other->hash) == 0;
}

static void send_batch(struct ledger *ledger);

static void first_found(void *context, enum sink_answer answer, const struct record *record)
{
    struct ledger *ledger = context;
    if (ledger->closing)
        return;
    if (answer == SINK_FAILED) {
        go_down(ledger);
        return;
    }
    if (answer == SINK_FOUND && strcmp(record->row_hash, ledger->batch.records[0]->row_hash) == 0)
        batch_stored(ledger);
    else
        batch_returns(ledger);
    take_new_writer(ledger, &ledger->found);
    go_on(ledger);
}

/* The head is neither before nor behind the batch: is one of its rows there? */
static void resolve_by_row(struct ledger *ledger)
{
    if (ledger->batch.sink.record_count == 0) {
        batch_returns(ledger);
        take_new_writer(ledger, &ledger->found);
        go_on(ledger);
        return;
    }
    struct sink_key key = {.run_id = ledger->batch.records[0]->run_id};
    ledger->sink->ops->find(ledger->sink, &key, deadline_ms(ledger), first_found, ledger);
}

static void resolve_batch(struct ledger *ledger)
{
    if (same_head(&ledger->found, &ledger->batch.behind)) {
        batch_stored(ledger);
        go_on(ledger);
    } else if (same_head(&ledger->found, &ledger->batch.sink.head)) {
        send_batch(ledger);
    } else {
        resolve_by_row(ledger);
    }
}

/* The journal knows what the former daemon was told: the ledger must not have less. */
static void compare_with_journal(struct ledger *ledger)
{
    struct sink_head noted;
    if (journal_last_head(ledger->line->journal, &noted.seq, noted.hash) &&
        (ledger->found.seq < noted.seq ||
         (ledger->found.seq == noted.seq && !same_head(&ledger->found, &noted)))) {
        ledger->head = noted;
        take_new_writer(ledger, &ledger->found);
    } else {
        ledger->head = ledger->found;
    }
    ledger->head_known = true;
}

/* What the sink says of the head is certain now. */
static void use_head(struct ledger *ledger)
{
    if (ledger->batch.count > 0) {
        resolve_batch(ledger);
        return;
    }
    if (!ledger->head_known)
        compare_with_journal(ledger);
    else if (!same_head(&ledger->found, &ledger->head))
        take_new_writer(ledger, &ledger->found);
    go_on(ledger);
}

static void head_confirmed(void *context, enum sink_outcome outcome, size_t bad)
{
    struct ledger *ledger = context;
    (void)bad;
    if (ledger->closing)
        return;
    if (outcome == SINK_STORED)
        use_head(ledger);
    else
        go_down(ledger); /* it moves, or the write failed: all is asked again */
}

static void head_answered(void *context, enum sink_answer answer, const struct sink_head *head)
{
    struct ledger *ledger = context;
    if (ledger->closing)
        return;
    if (answer == SINK_FAILED) {
        go_down(ledger);
        return;
    }
    ledger->found = *head;
    if (head->seq == 0 && ledger->batch.count == 0) {
        use_head(ledger); /* there is nothing that could be lost */
        return;
    }
    struct sink_batch nothing = {.writer = ledger->writer, .head = *head};
    ledger->sink->ops->append(ledger->sink, &nothing, deadline_ms(ledger), head_confirmed, ledger);
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
    struct ledger_batch *batch = &ledger->batch;
    if (ledger->closing) {
        if (outcome == SINK_STORED)
            batch_stored(ledger);
        return;
    }
    switch (outcome) {
    case SINK_STORED:
        batch_stored(ledger);
        go_on(ledger);
        return;
    case SINK_REFUSED:
        if (batch->frozen) /* an earlier attempt may still win: nothing of it may change */
            go_down(ledger);
        else
            batch_refused(ledger, bad);
        return;
    case SINK_CONFLICT:
        ask_head(ledger);
        return;
    case SINK_NOT_STORED:
        if (!batch->frozen)
            batch_returns(ledger);
        go_down(ledger);
        return;
    case SINK_UNKNOWN:
        batch->frozen = true;
        go_down(ledger);
        return;
    }
}

static void send_batch(struct ledger *ledger)
{
    ledger->phase = LEDGER_APPENDING;
    ledger->sink->ops->append(ledger->sink, &ledger->batch.sink, deadline_ms(ledger), appended,
                              ledger);
    fault_point("batch_sent");
}

static void start_batch(struct ledger *ledger)
{
    if (ledger->phase != LEDGER_IDLE || !ledger->head_known || ledger->closing)
        return;
    size_t count = ledger_batch_fill(&ledger->batch, &ledger->pending, ledger->batch_most,
                                     ledger->writer, &ledger->head);
    ledger->pending_count -= count;
    ledger->sent_us = clock_monotonic_us();
    if (count > 0)
        send_batch(ledger);
}

static void add_entry(struct ledger *ledger, struct ledger_entry *entry)
{
    if (!entry)
        log_fatal("no memory for a row of the ledger");
    TAILQ_INSERT_TAIL(&ledger->pending, entry, link);
    ledger->pending_count++;
    if (entry->run || !entry->noted)
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
    if (entry)
        run->record = NULL;
    add_entry(ledger, entry);
}

void ledger_append_late(struct ledger *ledger, struct record *record)
{
    add_entry(ledger, ledger_entry_new(ledger->line, record, NULL, NULL));
}

void ledger_append_late_event(struct ledger *ledger, struct chain_event *event)
{
    add_entry(ledger, ledger_entry_new_event(ledger->line, event, true));
}

void ledger_note(struct ledger *ledger, enum event_kind kind, json_t *detail)
{
    add_entry(ledger, new_event(ledger, kind, detail));
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

void ledger_checkpoint(struct ledger *ledger, const struct checkpoint *checkpoint,
                       sink_done_fn *done, void *context)
{
    ledger->sink->ops->checkpoint(ledger->sink, checkpoint, deadline_ms(ledger), done, context);
}

bool ledger_is_down(const struct ledger *ledger)
{
    return ledger->down;
}

bool ledger_is_certain(const struct ledger *ledger)
{
    return ledger->head_known && !ledger->down;
}

const char *ledger_writer(const struct ledger *ledger)
{
    return ledger->writer;
}

const struct sink_head *ledger_head(const struct ledger *ledger)
{
    return &ledger->head;
}

size_t ledger_backlog(const struct ledger *ledger)
{
    return ledger->pending_count + ledger->batch.count;
}

/* How long the oldest row has been waiting. */
static int64_t oldest_us(const struct ledger *ledger)
{
    const struct ledger_entry *first =
        ledger->batch.count > 0 ? ledger->batch.entries[0] : TAILQ_FIRST(&ledger->pending);
    return first ? clock_monotonic_us() - first->since_us : 0;
}

void ledger_figures(const struct ledger *ledger, struct ledger_figures *out)
{
    *out = (struct ledger_figures){.up = ledger_is_certain(ledger),
                                   .backlog = ledger_backlog(ledger),
                                   .oldest_us = oldest_us(ledger),
                                   .batches = ledger->batches,
                                   .rows = ledger->rows,
                                   .seq = ledger->head.seq};
}

json_t *ledger_status(const struct ledger *ledger)
{
    struct ledger_figures figures;
    ledger_figures(ledger, &figures);
    const char *state = ledger->down ? "down" : ledger->head_known ? "up" : "unknown";
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "sink", ledger->sink->ops->name,
                     "state", state, "problem", ledger->sink->ops->problem(ledger->sink), "backlog",
                     (json_int_t)figures.backlog, "oldest_ms",
                     (json_int_t)(figures.oldest_us / 1000), "batches", (json_int_t)figures.batches,
                     "rows", (json_int_t)figures.rows, "seq", (json_int_t)figures.seq);
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
    memcpy(ledger->head.hash, digest_zero, DIGEST_HEX_BYTES);
    if (deadline_init(&ledger->retry, line->base, probe, ledger) < 0 ||
        deadline_init(&ledger->maintain, line->base, maintain, ledger) < 0) {
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
    deadline_stop(&ledger->maintain);
    sink_close(ledger->sink);
    batch_returns(ledger);
    while ((entry = TAILQ_FIRST(&ledger->pending))) {
        TAILQ_REMOVE(&ledger->pending, entry, link);
        ledger_entry_give_up(entry);
    }
    deadline_free(&ledger->retry);
    deadline_free(&ledger->maintain);
    free(ledger);
}

void ledger_settle(struct ledger *ledger, void (*settled)(void *context), void *context)
{
    ledger->settled = settled;
    ledger->settled_context = context;
    if (ledger->down || (ledger->phase == LEDGER_IDLE && ledger_backlog(ledger) == 0))
        tell_settled(ledger);
}

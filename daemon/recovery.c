/*
 * recovery.c - what a former daemon left in the journal becomes rows of the ledger.
 *
 * For each record left: is its run in the ledger? Then it was stored before the crash and is settled.
 * If not, and it carries an idempotency key that another run has, the run had lost the race for the
 * key before the crash and never started: it is settled without a row. Else it is appended, late.
 * Events that were kept are looked for in the same way. Each step can be cut off and repeated: nothing
 * is settled before the ledger has the row.
 */
#include "daemon/recovery.h"

#include "daemon/clock.h"
#include "daemon/deadline.h"
#include "daemon/fault.h"
#include "daemon/journal.h"
#include "daemon/ledger.h"
#include "daemon/log.h"
#include "daemon/metrics.h"

#define RECOVERY_RETRY_MS 200

struct recovery {
    struct line *line;
    struct record *record;     /* that is being asked about; or */
    struct chain_event *event; /* that one */
    struct deadline retry;
    bool asking; /* the ledger will call back */
    bool freed;  /* which frees it then */
    size_t interrupted, kept, known;
};

static void recover_next(struct recovery *recovery);

static void settle(struct recovery *recovery)
{
    journal_settle(recovery->line->journal,
                   recovery->event ? recovery->event->event_id : recovery->record->run_id);
    record_free(AR_TAKE(recovery->record));
    chain_event_free(AR_TAKE(recovery->event));
    recovery->known++;
    recover_next(recovery);
}

static void append(struct recovery *recovery)
{
    struct record *record = AR_TAKE(recovery->record);
    struct chain_event *event = AR_TAKE(recovery->event);
    bool interrupted = record && record->status == STATUS_INTERRUPTED;
    if (interrupted)
        record->finished_at = clock_wall_us();
    if (interrupted)
        metrics_count_end(recovery->line, record->reason);
    recovery->interrupted += interrupted;
    recovery->kept += !interrupted;
    if (event)
        ledger_append_late_event(recovery->line->ledger, event);
    else
        ledger_append_late(recovery->line->ledger, record);
    recover_next(recovery);
}

/* The ledger has called back; false when that is all that was waited for. */
static bool is_wanted(struct recovery *recovery)
{
    recovery->asking = false;
    if (!recovery->freed)
        return true;
    recovery_free(recovery);
    return false;
}

static void claimed(void *context, enum sink_claim claim, const char *holder, bool same_request)
{
    struct recovery *recovery = context;
    if (!is_wanted(recovery))
        return;
    (void)holder;
    (void)same_request;
    if (claim == SINK_CLAIMED)
        append(recovery);
    else if (claim == SINK_CLAIM_TAKEN)
        settle(recovery);
    else
        deadline_start(&recovery->retry, RECOVERY_RETRY_MS);
}

static void claim(struct recovery *recovery)
{
    const struct record *left = recovery->record;
    recovery->asking = true;
    ledger_claim(recovery->line->ledger, left->company, left->idempotency_key, left->request_sha256,
                 left->run_id, claimed, recovery);
}

static void found(void *context, enum sink_answer answer, const struct record *record)
{
    struct recovery *recovery = context;
    (void)record;
    if (!is_wanted(recovery))
        return;
    const struct record *left = recovery->record;
    if (answer == SINK_FAILED)
        deadline_start(&recovery->retry, RECOVERY_RETRY_MS);
    else if (answer == SINK_FOUND)
        settle(recovery);
    else if (left && left->idempotency_key)
        claim(recovery);
    else
        append(recovery);
}

static void ask(void *context)
{
    struct recovery *recovery = context;
    struct sink_key key = {0};
    if (!ledger_is_certain(recovery->line->ledger)) {
        deadline_start(&recovery->retry, RECOVERY_RETRY_MS);
        return;
    }
    if (recovery->event)
        key.event_id = recovery->event->event_id;
    else
        key.run_id = recovery->record->run_id;
    recovery->asking = true;
    ledger_find(recovery->line->ledger, &key, found, recovery);
    fault_point("recovery_asked");
}

/* The next event that was kept; one that cannot be read is said to be so, and stays in the journal. */
static struct chain_event *next_event(struct recovery *recovery)
{
    char id[UUID7_TEXT_BYTES], *text;
    while (journal_next_left_text(recovery->line->journal, JOURNAL_EVENT, id, &text)) {
        struct chain_event *event = NULL;
        struct fault fault = {0};
        AR_AUTO_JSON json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        free(text);
        if (value && chain_event_from_json(value, &event, &fault) == 0)
            return event;
        log_error("event %s in the journal cannot be read", id);
    }
    return NULL;
}

static void recover_next(struct recovery *recovery)
{
    recovery->record = journal_next_left(recovery->line->journal);
    if (!recovery->record)
        recovery->event = next_event(recovery);
    if (recovery->record || recovery->event)
        ask(recovery);
    else if (recovery->interrupted + recovery->kept + recovery->known > 0)
        log_info("recovered from the journal: %zu interrupted, %zu kept, %zu had been recorded",
                 recovery->interrupted, recovery->kept, recovery->known);
}

struct recovery *recovery_start(struct line *line)
{
    struct recovery *recovery = calloc(1, sizeof *recovery);
    if (!recovery)
        return NULL;
    recovery->line = line;
    if (deadline_init(&recovery->retry, line->base, ask, recovery) < 0) {
        free(recovery);
        return NULL;
    }
    recover_next(recovery);
    return recovery;
}

void recovery_free(struct recovery *recovery)
{
    if (!recovery)
        return;
    recovery->freed = true;
    if (recovery->asking)
        return;
    deadline_free(&recovery->retry);
    record_free(recovery->record);
    chain_event_free(recovery->event);
    free(recovery);
}

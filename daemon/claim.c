/*
 * claim.c - idempotency keys.
 *
 * The intent is durable before the key is claimed, so that a crash in between leaves either nothing or
 * a key whose run ends as `interrupted`: a key is never taken for ever by a run that has no end. A run
 * that finds its key taken by the same request waits, asking again with growing pauses, until the
 * other one is in the ledger, and is answered from there.
 */
#include "daemon/claim.h"

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/ledger.h"
#include "daemon/log.h"

#include <event2/event.h>
#include <string.h>

#define CLAIM_ASK_MS   50
#define CLAIM_GRACE_MS 10000 /* beyond what the other run and its record may take */

/* A run at this stage, and who has its key. */
struct claim {
    struct run *run;
    run_done_fn *done;
    char holder[UUID7_TEXT_BYTES];
    bool asking;
};

static void finish(struct claim *claim)
{
    struct run *run = claim->run;
    run_done_fn *done = claim->done;
    if (run->claim_timer)
        event_free(run->claim_timer);
    run->claim_timer = NULL;
    run->claim = NULL;
    free(claim);
    done(run);
}

static void give_up(struct claim *claim)
{
    if (!claim->run->stop)
        run_end(claim->run, REASON_OVERLOADED);
    finish(claim);
}

static struct record *copy_record(const struct record *record)
{
    struct record *copy = NULL;
    struct fault fault = {0};
    AR_AUTO_JSON json_t *value = record_to_json(record);
    if (!value || record_from_json(value, false, &copy, &fault) != 0)
        return NULL;
    return copy;
}

static void holder_found(void *context, enum sink_answer answer, const struct record *record)
{
    struct claim *claim = context;
    struct run *run = claim->run;
    struct timeval in = {.tv_usec = CLAIM_ASK_MS * 1000};
    claim->asking = false;
    if (answer == SINK_FOUND)
        run->replay = copy_record(record);
    if (run->replay) {
        run->withdrawn = true;
        finish(claim);
    } else if (run->stop || clock_monotonic_us() > run->claim_give_up_us ||
               evtimer_add(run->claim_timer, &in) != 0) {
        give_up(claim);
    }
}

static void ask_holder(evutil_socket_t fd, short what, void *context)
{
    struct claim *claim = context;
    struct sink_key key = {.run_id = claim->holder};
    (void)fd;
    (void)what;
    claim->asking = true;
    ledger_find(claim->run->line->ledger, &key, holder_found, claim);
}

static void wait_for_holder(struct claim *claim, const char *holder)
{
    struct run *run = claim->run;
    const struct config *config = run->config;
    int64_t ms = run->request->grant.limits.value[LIMIT_WALL_MS] + config->queue_deadline_ms +
                 config->ledger_deadline_ms + CLAIM_GRACE_MS;
    run->claim_give_up_us = clock_monotonic_us() + ms * 1000;
    memcpy(claim->holder, holder, strnlen(holder, sizeof claim->holder - 1));
    run->claim_timer = evtimer_new(run->line->base, ask_holder, claim);
    if (run->claim_timer)
        ask_holder(-1, 0, claim);
    else
        give_up(claim);
}

static void claimed(void *context, enum sink_claim outcome, const char *holder, bool same_request)
{
    struct claim *claim = context;
    struct run *run = claim->run;
    claim->asking = false;
    if (outcome == SINK_CLAIMED) {
        finish(claim);
    } else if (outcome == SINK_CLAIM_FAILED) {
        give_up(claim);
    } else if (!same_request) {
        run->withdrawn = true;
        finish(claim);
    } else {
        wait_for_holder(claim, holder);
    }
}

void claim_stage(struct run *run, run_done_fn *done)
{
    const struct request *request = run->request;
    if (!request->idempotency_key) {
        done(run);
        return;
    }
    struct claim *claim = calloc(1, sizeof *claim);
    if (!claim) {
        run_end(run, REASON_OVERLOADED);
        done(run);
        return;
    }
    *claim = (struct claim){.run = run, .done = done, .asking = true};
    run->claim = claim;
    ledger_claim(run->line->ledger, request->company, request->idempotency_key,
                 request->request_sha256, run->id, claimed, claim);
}

void claim_poke(struct run *run)
{
    struct claim *claim = run->claim;
    if (!claim || claim->asking)
        return; /* the answer that is on its way looks at run->stop */
    give_up(claim);
}

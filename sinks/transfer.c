/*
 * transfer.c - see transfer.h. A loop of its own that runs until what was asked is answered.
 *
 * Partitions are made by a connection of their own that waits, because a sink only makes those of the
 * time to come. The span that was made is remembered, so that it is asked for once in a while.
 */
#include "sinks/transfer.h"

#include "sinks/url.h"

#include <event2/event.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#define DEADLINE_MS 60000
#define ATTEMPTS    6

#define DAY_MS     (INT64_C(86400) * 1000)
#define AHEAD_MS   (28 * DAY_MS)  /* made beyond what a batch needs */
#define LONGEST_MS (300 * DAY_MS) /* in one call */

/* The answer to one of several claims. */
struct slot {
    struct transfer *transfer;
    enum sink_claim claim;
};

struct transfer {
    struct event_base *base;
    struct sink *sink;
    PGconn *pg;                          /* NULL: SQLite */
    int64_t made_from_ms, made_until_ms; /* partitions that are there; equal: none are known */
    char message[TRANSFER_MESSAGE_BYTES];

    /* the answer of what is going on */
    size_t open; /* answers that are to come */
    enum sink_outcome outcome;
    enum sink_answer answer;
    struct sink_head head;
    size_t bad;
    bool done;
    struct slot slots[TRANSFER_MAX_KEYS];
};

/* ---- waiting ------------------------------------------------------------------------------------ */

static void wait_for_answers(struct transfer *transfer)
{
    while (transfer->open > 0 && event_base_loop(transfer->base, EVLOOP_ONCE) >= 0)
        ;
}

static void pause_done(evutil_socket_t fd, short what, void *context)
{
    struct transfer *transfer = context;
    (void)fd;
    (void)what;
    transfer->open--;
}

/* Before another attempt. */
static void pause_for(struct transfer *transfer, int seconds)
{
    struct timeval in = {.tv_sec = seconds};
    transfer->open = 1;
    if (event_base_once(transfer->base, -1, EV_TIMEOUT, pause_done, transfer, &in) == 0)
        wait_for_answers(transfer);
}

static int say(char message[TRANSFER_MESSAGE_BYTES], const char *text, int code)
{
    (void)snprintf(message, TRANSFER_MESSAGE_BYTES, "%s", text ? text : "");
    message[strcspn(message, "\n")] = '\0';
    return code;
}

/* What is wrong, by the sink's own word. */
static int failed(struct transfer *transfer)
{
    const char *problem = transfer->sink->ops->problem(transfer->sink);
    return say(transfer->message, problem[0] ? problem : "the store gave no answer in time",
               TRANSFER_FAILED);
}

const char *transfer_message(const struct transfer *transfer)
{
    return transfer->message;
}

/* ---- heads -------------------------------------------------------------------------------------- */

static void head_done(void *context, enum sink_answer answer, const struct sink_head *head)
{
    struct transfer *transfer = context;
    transfer->answer = answer;
    if (answer != SINK_FAILED)
        transfer->head = *head;
    transfer->open--;
}

int transfer_head(struct transfer *transfer, const char *writer, struct sink_head *head)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        transfer->open = 1;
        transfer->sink->ops->head(transfer->sink, writer, DEADLINE_MS, head_done, transfer);
        wait_for_answers(transfer);
        if (transfer->answer != SINK_FAILED) {
            *head = transfer->head;
            return TRANSFER_DONE;
        }
        pause_for(transfer, 1);
    }
    return failed(transfer);
}

/* ---- partitions --------------------------------------------------------------------------------- */

static int ask_partitions(struct transfer *transfer, int64_t from_ms, int64_t until_ms)
{
    char from[24], length[24];
    const char *const values[] = {length, from};
    (void)snprintf(from, sizeof(from), "%" PRId64, from_ms);
    (void)snprintf(length, sizeof(length), "%" PRId64, until_ms - from_ms);
    PGresult *result =
        PQexecParams(transfer->pg,
                     "SELECT auditrun.make_partitions($1::int8 * interval '1 millisecond', "
                     "to_timestamp(0) + $2::int8 * interval '1 millisecond')",
                     2, NULL, values, NULL, NULL, 0);
    bool made = PQresultStatus(result) == PGRES_TUPLES_OK;
    PQclear(result);
    return made ? TRANSFER_DONE
                : say(transfer->message, PQerrorMessage(transfer->pg), TRANSFER_FAILED);
}

/* In pieces, for the server has a limit on how many it makes at once. */
static int make_span(struct transfer *transfer, int64_t from_ms, int64_t until_ms)
{
    int rc = TRANSFER_DONE;
    for (int64_t at = from_ms; at < until_ms && rc == TRANSFER_DONE; at += LONGEST_MS)
        rc = ask_partitions(transfer, at, until_ms - at > LONGEST_MS ? at + LONGEST_MS : until_ms);
    if (rc != TRANSFER_DONE)
        return rc;
    transfer->made_from_ms = from_ms;
    transfer->made_until_ms = until_ms;
    return TRANSFER_DONE;
}

static int make_partitions(struct transfer *transfer, const struct sink_batch *batch)
{
    int64_t least = INT64_MAX, most = -1;
    for (size_t i = 0; i < batch->record_count; i++) {
        int64_t at = (int64_t)uuid7_time_ms(batch->records[i]->run_id);
        least = at < least ? at : least;
        most = at > most ? at : most;
    }
    if (!transfer->pg || most < 0 ||
        (least >= transfer->made_from_ms && most < transfer->made_until_ms))
        return TRANSFER_DONE;
    if (PQstatus(transfer->pg) != CONNECTION_OK)
        PQreset(transfer->pg);
    return make_span(transfer, least, most + AHEAD_MS);
}

/* ---- batches ------------------------------------------------------------------------------------ */

static void append_done(void *context, enum sink_outcome outcome, size_t bad)
{
    struct transfer *transfer = context;
    transfer->outcome = outcome;
    transfer->bad = bad;
    transfer->open--;
}

static bool same_head(const struct sink_head *one, const struct sink_head *other)
{
    return one->seq == other->seq && (one->seq == 0 || strcmp(one->hash, other->hash) == 0);
}

/* One attempt: an outcome, or -EAGAIN when the batch is certainly not there and may be tried again. */
static int try_append(struct transfer *transfer, const struct sink_batch *batch, size_t *bad)
{
    struct sink_head head, wanted = sink_batch_head(batch);
    transfer->open = 1;
    transfer->sink->ops->append(transfer->sink, batch, DEADLINE_MS, append_done, transfer);
    wait_for_answers(transfer);
    *bad = transfer->bad;
    if (transfer->outcome == SINK_STORED)
        return TRANSFER_DONE;
    if (transfer->outcome == SINK_REFUSED)
        return TRANSFER_REFUSED;
    int rc = transfer_head(transfer, batch->writer, &head);
    if (rc != TRANSFER_DONE)
        return rc;
    if (same_head(&head, &wanted))
        return TRANSFER_DONE;
    return same_head(&head, &batch->head) ? -EAGAIN : TRANSFER_CONFLICT;
}

int transfer_append(struct transfer *transfer, const struct sink_batch *batch, size_t *bad)
{
    int rc = make_partitions(transfer, batch);
    if (rc != TRANSFER_DONE)
        return rc;
    for (int i = 0; i < ATTEMPTS; i++) {
        rc = try_append(transfer, batch, bad);
        if (rc != -EAGAIN)
            return rc;
        pause_for(transfer, 1);
    }
    return failed(transfer);
}

/* ---- keys and checkpoints ----------------------------------------------------------------------- */

static void claim_done(void *context, enum sink_claim claim, const char *holder, bool same_request)
{
    struct slot *slot = context;
    (void)holder;
    (void)same_request;
    slot->claim = claim;
    slot->transfer->open--;
}

int transfer_keys(struct transfer *transfer, const struct transfer_key *keys, size_t count,
                  size_t *bad)
{
    transfer->open = count;
    for (size_t i = 0; i < count; i++) {
        transfer->slots[i] = (struct slot){transfer, SINK_CLAIM_FAILED};
        transfer->sink->ops->claim(transfer->sink, keys[i].company, keys[i].idempotency_key,
                                   keys[i].request_sha256, keys[i].run_id, DEADLINE_MS, claim_done,
                                   &transfer->slots[i]);
    }
    wait_for_answers(transfer);
    for (*bad = 0; *bad < count; ++*bad) {
        if (transfer->slots[*bad].claim == SINK_CLAIM_TAKEN)
            return TRANSFER_CONFLICT;
        if (transfer->slots[*bad].claim != SINK_CLAIMED)
            return failed(transfer);
    }
    return TRANSFER_DONE;
}

static void checkpoint_done(void *context, bool done)
{
    struct transfer *transfer = context;
    transfer->done = done;
    transfer->open--;
}

int transfer_checkpoint(struct transfer *transfer, const struct checkpoint *checkpoint)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        transfer->open = 1;
        transfer->sink->ops->checkpoint(transfer->sink, checkpoint, DEADLINE_MS, checkpoint_done,
                                        transfer);
        wait_for_answers(transfer);
        if (transfer->done)
            return TRANSFER_DONE;
        pause_for(transfer, 1);
    }
    return failed(transfer);
}

/* ---- opening ------------------------------------------------------------------------------------ */

static void probe_done(void *context, bool up)
{
    struct transfer *transfer = context;
    transfer->done = up;
    transfer->open--;
}

static bool is_up(struct transfer *transfer)
{
    transfer->open = 1;
    transfer->sink->ops->probe(transfer->sink, DEADLINE_MS, probe_done, transfer);
    wait_for_answers(transfer);
    return transfer->done;
}

static int connect_for_partitions(struct transfer *transfer, const char *conninfo)
{
    const char *const names[] = {"dbname", "fallback_application_name", NULL};
    const char *const values[] = {conninfo, "auditrun", NULL};
    transfer->pg = PQconnectdbParams(names, values, 1);
    if (!transfer->pg)
        return -ENOMEM;
    return PQstatus(transfer->pg) == CONNECTION_OK
               ? 0
               : say(transfer->message, PQerrorMessage(transfer->pg), 1);
}

static int open_all(struct transfer *transfer, const char *url)
{
    const char *rest;
    transfer->base = event_base_new();
    if (!transfer->base)
        return -ENOMEM;
    if (url_parse(url, &rest) == URL_POSTGRES) {
        int rc = connect_for_partitions(transfer, rest);
        if (rc != 0)
            return rc;
    }
    int rc = sink_open(url, transfer->base, &transfer->sink);
    if (rc != 0)
        return rc < 0 ? rc : 2;
    return is_up(transfer) ? 0 : (failed(transfer), 1);
}

int transfer_open(const char *url, struct transfer **out, char message[TRANSFER_MESSAGE_BYTES])
{
    AR_CLEANUP(transfer_cleanup) struct transfer *transfer = calloc(1, sizeof(*transfer));
    message[0] = '\0';
    if (!transfer)
        return -ENOMEM;
    int rc = open_all(transfer, url);
    if (rc == 1)
        (void)say(message, transfer->message, 1);
    if (rc == 0)
        *out = AR_TAKE(transfer);
    return rc;
}

void transfer_close(struct transfer *transfer)
{
    if (!transfer)
        return;
    sink_close(transfer->sink);
    PQfinish(transfer->pg);
    if (transfer->base)
        event_base_free(transfer->base);
    free(transfer);
}

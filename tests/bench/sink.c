/*
 * sink.c - how many rows a second does a ledger take, without a daemon around it?
 *
 * Makes and seals rows first (that is the daemon's work), then hands them to the sink in batches, each
 * when the one before it is stored, as the daemon does. Each row has a code hash and an id of its own,
 * one of 1000 companies and 1000 actors, and texts as long as those of the anchor. A batch that is not
 * stored ends the measurement: a fast wrong answer is no result.
 *
 * usage: sink URL BATCH ROWS
 * prints: p50_us p99_us rows_per_second     (of a batch; the ledger must have been made)
 */
#include "sinks/sink.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define MAX_ROWS    1000000
#define DEADLINE_MS 30000
#define GRANT                                                                                 \
    "{\"data_api\":[],\"filesystem\":{\"read\":[],\"write\":[]},\"limits\":{\"cpu_ms\":2000," \
    "\"memory_bytes\":268435456,\"wall_ms\":5000},\"network\":{\"mode\":\"none\"},\"secrets\":[]}"
#define USAGE \
    "{\"memory_peak_bytes\":10485760,\"system_us\":3000,\"user_us\":12000,\"wall_us\":31000}"

struct bench {
    struct event_base *base;
    struct sink *sink;
    struct record **rows;
    size_t count, batch, stored;
    double *took_us; /* of each batch */
    size_t batches;
    double sent_us;
    bool up, failed;
};

static double now_us(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "sink: %s\n", what);
    exit(1);
}

static void *need(void *memory)
{
    if (!memory)
        give_up("no memory");
    return memory;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void next_id(struct uuid7_generator *ids, char out[UUID7_TEXT_BYTES])
{
    uint8_t random[10];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        give_up("no random bytes");
    uuid7_next(ids, (uint64_t)(now_us(CLOCK_REALTIME) / 1e3), random, out);
}

static char *numbered(const char *word, size_t number)
{
    char *text;
    if (asprintf(&text, "%s-%zu", word, number) < 0)
        give_up("no memory");
    return text;
}

static void fill(struct record *record, size_t number)
{
    int64_t now = (int64_t)now_us(CLOCK_REALTIME);
    record->company = numbered("company", 1 + number * 7919 % 1000);
    record->actor = numbered("an actor of the bench", 1 + number * 104729 % 1000);
    record->purpose = need(strdup("measuring what rows cost"));
    record->language = need(strdup("python"));
    record->grant = need(strdup(GRANT));
    record->provider = need(strdup("namespace"));
    record->provider_version = need(strdup("0.1.0"));
    record->usage = need(strdup(USAGE));
    record->denials = need(strdup("[]"));
    record->status = STATUS_SUCCEEDED;
    record->reason = REASON_EXIT_ZERO;
    record->exit_code = 0;
    record->received_at = now - 31000;
    record->started_at = now - 30000;
    record->finished_at = now;
    if (digest_hex(record->run_id, strlen(record->run_id), record->code_sha256) < 0 ||
        digest_hex("", 0, record->envelope_sha256) < 0)
        give_up("no digest");
}

static void make_rows(struct bench *bench)
{
    struct uuid7_generator ids = {0};
    char writer[UUID7_TEXT_BYTES];
    const char *previous = digest_zero;
    next_id(&ids, writer);
    for (size_t i = 0; i < bench->count; i++) {
        struct record *record = need(record_new());
        next_id(&ids, record->run_id);
        fill(record, i);
        if (record_seal(record, writer, (int64_t)i + 1, previous, record->finished_at, false) < 0)
            give_up("a row cannot be sealed");
        previous = record->row_hash;
        bench->rows[i] = record;
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void send_batch(struct bench *bench);

static void stored(void *context, enum sink_outcome outcome, size_t bad)
{
    struct bench *bench = context;
    (void)bad;
    bench->failed = outcome != SINK_STORED;
    bench->took_us[bench->batches++] = now_us(CLOCK_MONOTONIC) - bench->sent_us;
    bench->stored += bench->batch;
    if (bench->failed || bench->stored + bench->batch > bench->count)
        (void)event_base_loopbreak(bench->base);
    else
        send_batch(bench);
}

static void send_batch(struct bench *bench)
{
    struct record **rows = bench->rows + bench->stored;
    struct sink_batch batch = {.writer = rows[0]->writer,
                               .head = {.seq = rows[0]->seq - 1},
                               .records = rows,
                               .record_count = bench->batch};
    memcpy(batch.head.hash, rows[0]->prev_hash, sizeof(batch.head.hash));
    bench->sent_us = now_us(CLOCK_MONOTONIC);
    bench->sink->ops->append(bench->sink, &batch, DEADLINE_MS, stored, bench);
}

static void probed(void *context, bool up)
{
    struct bench *bench = context;
    bench->up = up;
    (void)event_base_loopbreak(bench->base);
}

static int by_time(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void measure(struct bench *bench)
{
    bench->sink->ops->probe(bench->sink, DEADLINE_MS, probed, bench);
    (void)event_base_dispatch(bench->base);
    if (!bench->up)
        give_up("the ledger is not up");
    double start = now_us(CLOCK_MONOTONIC);
    send_batch(bench);
    (void)event_base_dispatch(bench->base);
    double seconds = (now_us(CLOCK_MONOTONIC) - start) / 1e6;
    if (bench->failed)
        give_up("a batch was not stored");
    qsort(bench->took_us, bench->batches, sizeof(double), by_time);
    printf("%.0f %.0f %.0f\n", bench->took_us[bench->batches / 2],
           bench->took_us[bench->batches * 99 / 100], (double)bench->stored / seconds);
}

int main(int argc, char **argv)
{
    struct bench bench = {.base = event_base_new()};
    if (argc != 4 || !bench.base)
        give_up("usage: sink URL BATCH ROWS");
    bench.batch = strtoul(argv[2], NULL, 10);
    bench.count = strtoul(argv[3], NULL, 10);
    if (bench.batch < 1 || bench.batch > SINK_MAX_BATCH || bench.count < bench.batch ||
        bench.count > MAX_ROWS)
        give_up("a batch has 1 to 1000 rows, and there is at least one batch");
    bench.rows = need(calloc(bench.count, sizeof(struct record *)));
    bench.took_us = need(calloc(bench.count / bench.batch + 1, sizeof(double)));
    make_rows(&bench);
    if (sink_open(argv[1], bench.base, &bench.sink) != 0)
        give_up("no such ledger");
    measure(&bench);
    sink_close(bench.sink);
    for (size_t i = 0; i < bench.count; i++)
        record_free(bench.rows[i]);
    free((void *)bench.rows);
    free(bench.took_us);
    event_base_free(bench.base);
    return 0;
}

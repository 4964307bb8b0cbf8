/*
 * verify.c - how fast the whole ledger is verified: rows a second, and rows a second of its own
 * processor time, without what the server takes for it.
 *
 *     verify [--fill ROWS] URL [ROUNDS]
 *
 * --fill first makes the ledger (the schema, and ROWS plain records of four writers, one in fifty rows
 * an event) through the sink of the URL. One line of JSON: medians of the rounds, and the largest that
 * the process grew (KiB) while it verified.
 */
#include "sinks/verify.h"
#include "sinks/schema.h"
#include "sinks/sink.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BATCH       500
#define WRITERS     4
#define MAX_ROUNDS  64
#define DEADLINE_MS 60000
#define EVENT_EVERY 50
#define NOW_MS      UINT64_C(1769860800000)

static void must(bool right, const char *what)
{
    if (right)
        return;
    (void)fprintf(stderr, "verify: %s failed\n", what);
    exit(EXIT_FAILURE);
}

/* ---- filling ------------------------------------------------------------------------------------ */

struct chain {
    char writer[UUID7_TEXT_BYTES];
    struct sink_head head;
};

struct fill {
    struct event_base *base;
    struct sink *sink;
    struct uuid7_generator ids;
    uint64_t random;
    struct chain chains[WRITERS];
    bool is_done;
};

static void next_id(struct fill *fill, char out[UUID7_TEXT_BYTES])
{
    uint8_t bytes[10];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        fill->random = fill->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        bytes[i] = (uint8_t)(fill->random >> 56);
    }
    uuid7_next(&fill->ids, NOW_MS, bytes, out);
}

static void set(struct record *record, const char *name, const char *text)
{
    must(row_set(&record_layout, record, row_find(&record_layout, name), text) == 0, name);
}

static struct record *make_record(struct fill *fill)
{
    static const char *const columns[][2] = {
        {"company", "acme"},
        {"actor", "agent-000017"},
        {"purpose", "monthly revenue report for the finance team"},
        {"client_name", "billing"},
        {"language", "python"},
        {"grant", "{\"data_api\":[],\"filesystem\":{\"read\":[\"/srv/catalogue\"],\"write\":[]},"
                  "\"limits\":{\"cpu_ms\":2000,\"memory_bytes\":134217728,\"output_bytes\":1048576,"
                  "\"processes\":16,\"wall_ms\":5000},\"network\":{\"hosts\":[],\"mode\":\"none\"},"
                  "\"secrets\":[]}"},
        {"provider", "namespace"},
        {"provider_version", "0.1.0"},
        {"envelope_sha256", digest_zero},
        {"status", "succeeded"},
        {"reason", "exit_zero"},
        {"denials", "[]"},
        {"usage", "{\"memory_peak_bytes\":10485760,\"output_bytes\":42,\"processes_peak\":1,"
                  "\"system_us\":4000,\"user_us\":12000,\"wall_us\":31000}"},
    };
    struct record *record = record_new();
    must(record != NULL, "memory");
    for (size_t i = 0; i < AR_COUNT(columns); i++)
        set(record, columns[i][0], columns[i][1]);
    next_id(fill, record->run_id);
    must(digest_hex(record->run_id, UUID7_TEXT_BYTES - 1, record->code_sha256) == 0, "digest_hex");
    record->client_uid = record->client_gid = 1000;
    record->client_pid = 4242;
    record->exit_code = 0;
    record->code_bytes = 512;
    record->received_at = (int64_t)NOW_MS * 1000;
    record->started_at = record->received_at + 500;
    record->finished_at = record->received_at + 31000;
    return record;
}

static void advance(struct chain *chain, const char *hash)
{
    chain->head.seq++;
    memcpy(chain->head.hash, hash, sizeof(chain->head.hash));
}

static void add_record(struct fill *fill, struct chain *chain, struct record **record)
{
    *record = make_record(fill);
    must(record_seal(*record, chain->writer, chain->head.seq + 1, chain->head.hash,
                     (*record)->finished_at, false) == 0,
         "record_seal");
    advance(chain, (*record)->row_hash);
}

static void add_event(struct fill *fill, struct chain *chain, struct chain_event **event)
{
    char id[UUID7_TEXT_BYTES];
    next_id(fill, id);
    *event = chain_event_new(id, EVENT_SWITCHED, NULL, (int64_t)NOW_MS * 1000);
    must(*event && chain_event_seal(*event, chain->writer, chain->head.seq + 1, chain->head.hash,
                                    (int64_t)NOW_MS * 1000, false) == 0,
         "chain_event_seal");
    advance(chain, (*event)->row_hash);
}

static void appended(void *context, enum sink_outcome outcome, size_t bad)
{
    (void)bad;
    must(outcome == SINK_STORED, "append");
    ((struct fill *)context)->is_done = true;
}

static void append(struct fill *fill, struct chain *chain)
{
    struct record *records[BATCH];
    struct chain_event *events[BATCH / EVENT_EVERY + 1];
    struct sink_batch batch = {
        .writer = chain->writer, .head = chain->head, .records = records, .events = events};
    for (size_t i = 0; i < BATCH; i++) {
        if (i % EVENT_EVERY == 0)
            add_event(fill, chain, &events[batch.event_count++]);
        else
            add_record(fill, chain, &records[batch.record_count++]);
    }
    fill->is_done = false;
    fill->sink->ops->append(fill->sink, &batch, DEADLINE_MS, appended, fill);
    while (!fill->is_done)
        must(event_base_loop(fill->base, EVLOOP_ONCE) >= 0, "the loop");
    for (size_t i = 0; i < batch.record_count; i++)
        record_free(records[i]);
    for (size_t i = 0; i < batch.event_count; i++)
        chain_event_free(events[i]);
}

static void fill_ledger(const char *url, int64_t rows)
{
    char message[SCHEMA_MESSAGE_BYTES] = "";
    int applied = 0;
    struct fill fill = {.base = event_base_new(), .random = 42};
    must(schema_init(url, &applied, message) == 0, message);
    must(fill.base && sink_open(url, fill.base, &fill.sink) == 0, "sink_open");
    for (size_t i = 0; i < WRITERS; i++) {
        next_id(&fill, fill.chains[i].writer);
        memcpy(fill.chains[i].head.hash, digest_zero, sizeof(digest_zero));
    }
    for (int64_t i = 0; i < rows / BATCH; i++)
        append(&fill, &fill.chains[i % WRITERS]);
    sink_close(fill.sink);
    event_base_free(fill.base);
}

/* ---- verifying ---------------------------------------------------------------------------------- */

struct times {
    double wall, cpu;
};

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static struct times now(void)
{
    struct timespec at;
    struct rusage usage;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    (void)getrusage(RUSAGE_SELF, &usage);
    return (struct times){(double)at.tv_sec + (double)at.tv_nsec / 1e9,
                          seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime)};
}

static long peak_kib(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static int64_t verify(const char *url, struct times *took)
{
    char message[READER_MESSAGE_BYTES] = "";
    struct reader *reader = NULL;
    struct verify_result result;
    must(reader_open(url, &reader, message) == 0, message);
    struct times from = now();
    must(verify_ledger(reader, NULL, &result) == 0, "verify_ledger");
    struct times until = now();
    reader_close(reader);
    must(result.finding == VERIFY_OK, verify_word(result.finding));
    *took = (struct times){until.wall - from.wall, until.cpu - from.cpu};
    return result.rows;
}

static int compare(const void *left, const void *right)
{
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

int main(int argc, char **argv)
{
    bool fills = argc > 3 && strcmp(argv[1], "--fill") == 0;
    char **rest = fills ? argv + 3 : argv + 1;
    long rounds = rest[0] && rest[1] ? strtol(rest[1], NULL, 10) : 7;
    double walls[MAX_ROUNDS], cpus[MAX_ROUNDS];
    int64_t rows = 0;
    if (argc < 2 || !rest[0] || rounds < 1 || rounds > MAX_ROUNDS) {
        (void)fprintf(stderr, "usage: verify [--fill ROWS] URL [ROUNDS]\n");
        return 64;
    }
    if (fills)
        fill_ledger(rest[0], strtoll(argv[2], NULL, 10));
    long before = peak_kib();
    for (long i = 0; i < rounds; i++) {
        struct times took;
        rows = verify(rest[0], &took);
        walls[i] = took.wall;
        cpus[i] = took.cpu;
    }
    double wall = median(walls, (size_t)rounds), cpu = median(cpus, (size_t)rounds);
    (void)printf("{\"case\":\"verify\",\"rows\":%" PRId64 ",\"rounds\":%ld,\"wall_per_s\":%.0f,"
                 "\"cpu_per_s\":%.0f,\"grew_kib\":%ld}\n",
                 rows, rounds, (double)rows / wall, (double)rows / cpu, peak_kib() - before);
    return EXIT_SUCCESS;
}

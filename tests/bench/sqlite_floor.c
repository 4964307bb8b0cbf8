/*
 * sqlite_floor.c - what the embedded sink makes of SQLite: records a second through the sink in
 * batches of 100, against a bare loop of transactions of 100 rows, in turn in one run.
 *
 *     sqlite_floor FOLDER [ROUNDS [SECONDS]]
 *
 * Two floors: `bare`, a plain table of half as many columns with an index on company and time and one
 * on the code's hash; and `own`, the ledger's own tables and triggers with the same statements, but
 * without sink, chain and loop. FOLDER should be on the disk that counts. One line of JSON: medians
 * of the rounds, and the ratios.
 */
#include "sinks/sqlite.h"
#include "sinks/sqlite_row.h"
#include "sinks/sqlite_schema.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define BATCH       100
#define IN_FLIGHT   2
#define MAX_ROUNDS  64
#define DEADLINE_MS 20000
#define NOW_MS      UINT64_C(1769860800000)

static void must(bool right, const char *what)
{
    if (right)
        return;
    (void)fprintf(stderr, "sqlite_floor: %s failed\n", what);
    exit(EXIT_FAILURE);
}

static double now(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static uint64_t random_bits(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* ---- records ------------------------------------------------------------------------------------ */

struct source {
    struct uuid7_generator ids;
    uint64_t random;
    char writer[UUID7_TEXT_BYTES];
    struct sink_head head;
    struct record *records[IN_FLIGHT][BATCH];
};

static void next_id(struct source *source, char out[UUID7_TEXT_BYTES])
{
    uint64_t bits[2] = {random_bits(&source->random), random_bits(&source->random)};
    uint8_t bytes[10];
    memcpy(bytes, bits, sizeof(bytes));
    uuid7_next(&source->ids, NOW_MS, bytes, out);
}

static void set(struct record *record, const char *name, const char *text)
{
    must(row_set(&record_layout, record, row_find(&record_layout, name), text) == 0, name);
}

static struct record *make_record(void)
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
        {"usage", "{\"memory_peak_bytes\":10485760,\"user_us\":12000,\"wall_us\":31000}"},
    };
    struct record *record = record_new();
    must(record != NULL, "memory");
    for (size_t i = 0; i < AR_COUNT(columns); i++)
        set(record, columns[i][0], columns[i][1]);
    record->client_uid = record->client_gid = 1000;
    record->client_pid = 4242;
    record->exit_code = 0;
    record->code_bytes = 512;
    record->received_at = (int64_t)NOW_MS * 1000;
    record->started_at = record->received_at + 500;
    record->finished_at = record->received_at + 31000;
    return record;
}

static void source_begin(struct source *source)
{
    *source = (struct source){.random = 42};
    memcpy(source->head.hash, digest_zero, sizeof(source->head.hash));
    next_id(source, source->writer);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        for (size_t k = 0; k < BATCH; k++)
            source->records[i][k] = make_record();
}

static void source_end(struct source *source)
{
    for (size_t i = 0; i < IN_FLIGHT; i++)
        for (size_t k = 0; k < BATCH; k++)
            record_free(source->records[i][k]);
}

/* The next batch, in the records of this place; the chain moves on. */
static struct sink_batch next_batch(struct source *source, size_t place)
{
    struct sink_batch batch = {.writer = source->writer,
                               .head = source->head,
                               .records = source->records[place],
                               .record_count = BATCH};
    for (size_t k = 0; k < BATCH; k++) {
        struct record *record = source->records[place][k];
        uint64_t digest[4];
        for (size_t i = 0; i < AR_COUNT(digest); i++)
            digest[i] = random_bits(&source->random);
        next_id(source, record->run_id);
        for (size_t i = 0; i < AR_COUNT(digest); i++)
            (void)snprintf(record->code_sha256 + 16 * i, 17, "%016" PRIx64, digest[i]);
        must(record_seal(record, source->writer, source->head.seq + 1, source->head.hash,
                         record->finished_at, false) == 0,
             "record_seal");
        source->head.seq++;
        memcpy(source->head.hash, record->row_hash, sizeof(source->head.hash));
    }
    return batch;
}

/* ---- through the sink --------------------------------------------------------------------------- */

struct drive {
    struct event_base *base;
    struct sink *sink;
    struct source source;
    double until;
    uint64_t stored;
    size_t in_flight;
};

struct place {
    struct drive *drive;
    size_t index;
};

static void append(struct place *place);

static void appended(void *context, enum sink_outcome outcome, size_t bad)
{
    struct place *place = context;
    struct drive *drive = place->drive;
    (void)bad;
    must(outcome == SINK_STORED, "append");
    drive->stored += BATCH;
    drive->in_flight--;
    if (now() < drive->until)
        append(place);
    else if (drive->in_flight == 0)
        (void)event_base_loopbreak(drive->base);
}

static void append(struct place *place)
{
    struct drive *drive = place->drive;
    struct sink_batch batch = next_batch(&drive->source, place->index);
    drive->in_flight++;
    drive->sink->ops->append(drive->sink, &batch, DEADLINE_MS, appended, place);
}

static double run_sink(const char *path, double seconds)
{
    struct drive drive = {.base = event_base_new()};
    struct place places[IN_FLIGHT];
    must(drive.base && sqlite_open(path, drive.base, &drive.sink) == 0, "sqlite_open");
    source_begin(&drive.source);
    double from = now();
    drive.until = from + seconds;
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        places[i] = (struct place){&drive, i};
        append(&places[i]);
    }
    must(event_base_dispatch(drive.base) >= 0, "the loop");
    double took = now() - from;
    sink_close(drive.sink);
    event_base_free(drive.base);
    source_end(&drive.source);
    return (double)drive.stored / took;
}

/* ---- bare loops --------------------------------------------------------------------------------- */

static void sql(sqlite3 *db, const char *text)
{
    must(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK, text);
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *text)
{
    sqlite3_stmt *statement = NULL;
    must(sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK, text);
    return statement;
}

static void step(sqlite3_stmt *statement)
{
    must(sqlite3_step(statement) == SQLITE_DONE, "a row");
    must(sqlite3_reset(statement) == SQLITE_OK, "a row");
}

static double loop(sqlite3 *db, sqlite3_stmt *insert, struct source *source, double seconds)
{
    double from = now(), until = from + seconds;
    uint64_t rows = 0;
    while (now() < until) {
        if (source)
            (void)next_batch(source, 0);
        sql(db, "BEGIN IMMEDIATE");
        for (size_t i = 0; i < BATCH; i++) {
            if (source)
                must(sqlite_row_bind(insert, &record_layout, source->records[0][i]) == SQLITE_OK,
                     "binding");
            step(insert);
        }
        sql(db, "COMMIT");
        rows += BATCH;
    }
    double rate = (double)rows / (now() - from);
    (void)sqlite3_finalize(insert);
    return rate;
}

static sqlite3 *open_database(const char *path)
{
    sqlite3 *db = NULL;
    must(sqlite3_open(path, &db) == SQLITE_OK, "sqlite3_open");
    sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    return db;
}

static double run_bare(const char *path, double seconds)
{
    sqlite3 *db = open_database(path);
    sql(db, "CREATE TABLE audit (run_id BLOB PRIMARY KEY, company TEXT, actor TEXT, purpose TEXT,"
            "language TEXT, code_sha256 BLOB, grants TEXT, provider TEXT, status TEXT, usage TEXT,"
            "recorded_at INTEGER, prev_hash BLOB, row_hash BLOB);"
            "CREATE INDEX audit_company ON audit (company, recorded_at);"
            "CREATE INDEX audit_code ON audit (code_sha256)");
    sqlite3_stmt *insert = prepare(
        db, "INSERT INTO audit VALUES (randomblob(16), 'company-' || abs(random() % 1000),"
            "'agent-000017', 'monthly revenue report for the finance team', 'python',"
            "randomblob(32), '{\"read\":[\"/data/in\"],\"write\":[\"/data/out\"],\"network\":false,"
            "\"limits\":{\"cpu_ms\":2000,\"wall_ms\":5000,\"memory_mb\":256,\"pids\":32}}', 'ns',"
            "'ok', '{\"cpu_ms\":12,\"wall_ms\":31,\"max_rss_kb\":10240,\"exit_code\":0}',"
            "unixepoch(), randomblob(32), randomblob(32))");
    double rate = loop(db, insert, NULL, seconds);
    must(sqlite3_close(db) == SQLITE_OK, "sqlite3_close");
    return rate;
}

static double run_own(const char *path, double seconds)
{
    struct source source;
    sqlite3 *db = open_database(path);
    AR_AUTO_FREE char *text = sqlite_row_insert_sql(&record_layout);
    must(text != NULL, "memory");
    source_begin(&source);
    double rate = loop(db, prepare(db, text), &source, seconds);
    source_end(&source);
    must(sqlite3_close(db) == SQLITE_OK, "sqlite3_close");
    return rate;
}

/* ---- rounds ------------------------------------------------------------------------------------- */

enum subject { BARE, OWN, SINK, SUBJECTS };

static void remove_store(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < AR_COUNT(suffixes); i++) {
        AR_AUTO_FREE char *name = NULL;
        if (asprintf(&name, "%s%s", path, suffixes[i]) >= 0)
            (void)unlink(name);
    }
}

static double run(const char *folder, enum subject subject, double seconds)
{
    AR_AUTO_FREE char *path = NULL;
    char message[SCHEMA_MESSAGE_BYTES];
    int applied;
    must(asprintf(&path, "%s/sqlite_floor.db", folder) >= 0, "memory");
    remove_store(path);
    must(subject == BARE || sqlite_schema_init(path, &applied, message) == 0, "the schema");
    double rate = subject == BARE  ? run_bare(path, seconds)
                  : subject == OWN ? run_own(path, seconds)
                                   : run_sink(path, seconds);
    remove_store(path);
    return rate;
}

static int compare(const void *left, const void *right)
{
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

int main(int argc, char **argv)
{
    double rates[SUBJECTS][MAX_ROUNDS], medians[SUBJECTS];
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 7;
    double seconds = argc > 3 ? strtod(argv[3], NULL) : 3;
    if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS || !(seconds > 0)) {
        (void)fprintf(stderr, "usage: sqlite_floor FOLDER [ROUNDS [SECONDS]]\n");
        return 64;
    }
    for (long i = 0; i < rounds; i++)
        for (int subject = 0; subject < SUBJECTS; subject++)
            rates[subject][i] = run(argv[1], (enum subject)subject, seconds);
    for (int subject = 0; subject < SUBJECTS; subject++) {
        qsort(rates[subject], (size_t)rounds, sizeof(double), compare);
        medians[subject] = rates[subject][rounds / 2];
    }
    (void)printf("{\"case\":\"sqlite_sink\",\"batch\":%d,\"rounds\":%ld,\"bare_per_s\":%.0f,"
                 "\"own_per_s\":%.0f,\"sink_per_s\":%.0f,\"x_bare\":%.2f,\"x_own\":%.2f}\n",
                 BATCH, rounds, medians[BARE], medians[OWN], medians[SINK],
                 medians[SINK] / medians[BARE], medians[SINK] / medians[OWN]);
    return EXIT_SUCCESS;
}

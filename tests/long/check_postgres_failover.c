/*
 * check_postgres_failover.c - what becomes of batches when the server, its disk, its standby or the
 * way to it fails in the middle of COMMIT.
 *
 * Whatever comes, what the sink says is true: what it calls stored is there at the end, each row
 * once, on the server that is the primary then.
 */
#include "sinks/schema.h"
#include "tests/contract/server.h"
#include "tests/lib/ledger.h"
#include "tests/lib/pair.h"
#include "tests/lib/proxy.h"
#include "tests/suite.h"

#include <check.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SHORT_MS   700
#define DISK_BYTES ((size_t)112 << 20)
#define URL_BYTES  (2 * POSTGRES_URL_BYTES)
#define RETRIES    400

/* ---- one ledger, one chain ------------------------------------------------------------------ */

/* What each test has: a ledger whose sink goes its own way to the server, and one writer. */
struct writer {
    struct ledger ledger;
    struct records_chain chain;
    struct sink_head head; /* of what is stored */
    int64_t rows;
};

/* A batch under way. */
struct batch {
    struct sink_head head;
    struct record *records[RECORDS_MAX];
    size_t count;
    bool done;
    enum sink_outcome outcome;
};

/* The sink is opened anew, on another way to the store. */
static void use_url(struct writer *writer, const char *url)
{
    sink_close(writer->ledger.sink);
    writer->ledger.sink = NULL;
    ck_assert_int_eq(sink_open(url, writer->ledger.base, &writer->ledger.sink), 0);
}

static void begin(struct writer *writer, struct postgres_server *of)
{
    ledger_begin(&writer->ledger, LEDGER_POSTGRES, of);
    records_begin(&writer->chain, 1);
    writer->head = ledger_chain_head(&writer->chain);
    writer->rows = 0;
}

/* With the sink behind the proxy. */
static void begin_behind(struct writer *writer, struct postgres_server *of,
                         const struct proxy *proxy)
{
    char url[URL_BYTES], host[PROXY_HOST_BYTES];
    begin(writer, of);
    proxy_host(proxy, host);
    (void)snprintf(url, sizeof(url), "postgres:%s user=tester %s", host,
                   strstr(writer->ledger.url, "dbname="));
    use_url(writer, url);
}

/* In the first database of the pair, with the sink on this URL. */
static void begin_on_pair(struct writer *writer, const struct pair *pair, const char *url)
{
    char message[SCHEMA_MESSAGE_BYTES];
    int applied = 0;
    *writer = (struct writer){.ledger = {.kind = LEDGER_POSTGRES, .base = event_base_new()}};
    (void)snprintf(writer->ledger.url, sizeof(writer->ledger.url), "%s",
                   pair_url_of(pair, PAIR_FIRST));
    ck_assert_int_eq(schema_init(writer->ledger.url, &applied, message), 0);
    records_begin(&writer->chain, 1);
    writer->head = ledger_chain_head(&writer->chain);
    use_url(writer, url);
}

static void end(struct writer *writer)
{
    ledger_expect_sound(&writer->ledger, writer->rows, writer->rows > 0);
    ledger_end(&writer->ledger);
}

static struct batch *make_batch(struct writer *writer, size_t count)
{
    struct batch *batch = calloc(1, sizeof(*batch));
    ck_assert_ptr_nonnull(batch);
    batch->head = writer->head;
    batch->count = count;
    records_fill(&writer->chain, batch->records, count);
    return batch;
}

static void batch_done(void *context, enum sink_outcome outcome, size_t bad)
{
    struct batch *batch = context;
    (void)bad;
    batch->outcome = outcome;
    batch->done = true;
}

static void send_batch(struct writer *writer, struct batch *batch, int deadline_ms)
{
    const struct sink_batch sent = {.writer = writer->chain.writer,
                                    .head = batch->head,
                                    .records = batch->records,
                                    .record_count = batch->count};
    batch->done = false;
    writer->ledger.sink->ops->append(writer->ledger.sink, &sent, deadline_ms, batch_done, batch);
}

static enum sink_outcome append(struct writer *writer, struct batch *batch, int deadline_ms)
{
    send_batch(writer, batch, deadline_ms);
    ledger_wait(writer->ledger.base, &batch->done);
    return batch->outcome;
}

/* Is what the head says as durable as a commit? */
static enum sink_outcome confirm(struct writer *writer, const struct sink_head *head,
                                 int deadline_ms)
{
    struct batch batch = {.head = *head};
    return append(writer, &batch, deadline_ms);
}

static bool is_there(struct writer *writer, const struct batch *batch)
{
    for (int i = 0; i < RETRIES; i++) {
        AR_CLEANUP(record_cleanup) struct record *found = NULL;
        const struct sink_key key = {.run_id = batch->records[batch->count - 1]->run_id};
        enum sink_answer answer = ledger_find(&writer->ledger, &key, &found);
        if (answer == SINK_FAILED)
            continue; /* its connection may have gone with the fault */
        return answer == SINK_FOUND &&
               strcmp(found->row_hash, batch->records[batch->count - 1]->row_hash) == 0;
    }
    ck_abort_msg("no answer from the ledger");
}

/* What a ledger does with a batch whose fate it does not know: it goes on until it is certain. */
static void settle(struct writer *writer, struct batch *batch)
{
    for (int i = 0; i < RETRIES; i++) {
        if (batch->outcome == SINK_STORED)
            break;
        ck_assert_int_ne(batch->outcome, SINK_REFUSED);
        if (!ledger_probe(&writer->ledger, LEDGER_DEADLINE_MS))
            continue;
        if (append(writer, batch, LEDGER_DEADLINE_MS) == SINK_CONFLICT) {
            ck_assert(is_there(writer, batch));
            batch->outcome = SINK_STORED;
        }
    }
    ck_assert_int_eq(batch->outcome, SINK_STORED);
    ck_assert(is_there(writer, batch));
    writer->head.seq = batch->records[batch->count - 1]->seq;
    memcpy(writer->head.hash, batch->records[batch->count - 1]->row_hash,
           sizeof(writer->head.hash));
    writer->rows += (int64_t)batch->count;
    records_free(batch->records, batch->count);
    free(batch);
}

/* So many rows, without a fault. */
static void grow(struct writer *writer, size_t count)
{
    struct batch *batch = make_batch(writer, count);
    batch->outcome = SINK_NOT_STORED;
    settle(writer, batch);
}

/* Runs the loop until the question has this answer. */
static void wait_until(struct writer *writer, const char *question, const char *answer)
{
    const struct timeval turn = {.tv_usec = 10000};
    for (int i = 0; i < 6000; i++) {
        ck_assert_int_eq(event_base_loopexit(writer->ledger.base, &turn), 0);
        ck_assert_int_ge(event_base_dispatch(writer->ledger.base), 0);
        AR_AUTO_FREE char *said = postgres_sql(writer->ledger.url, question);
        if (said && strcmp(said, answer) == 0)
            return;
    }
    ck_abort_msg("in vain: %s", question);
}

/* The loop has to run for the sink to send what the proxy waits for. */
static void wait_for_proxy(struct writer *writer, struct proxy *proxy, unsigned count)
{
    while (proxy_acted(proxy) < count)
        ck_assert_int_ge(event_base_loop(writer->ledger.base, EVLOOP_NONBLOCK), 0);
}

/* ---- the way to the server (C25) ------------------------------------------------------------ */

static struct proxy *start_proxy(const struct postgres_server *to)
{
    char path[POSTGRES_PATH_BYTES];
    postgres_socket(to, path);
    struct proxy *proxy = proxy_start(path, false);
    ck_assert_ptr_nonnull(proxy);
    return proxy;
}

/* The question, or the answer, is lost. Before and after tell it from the other. */
START_TEST(test_cut_at_commit)
{
    struct writer writer;
    struct proxy *proxy = start_proxy(server);
    begin_behind(&writer, server, proxy);
    grow(&writer, 2);
    struct batch *batch = make_batch(&writer, 3);
    proxy_set(proxy, _i == 0 ? PROXY_CUT_BEFORE : PROXY_CUT_AFTER, 1);
    ck_assert_int_eq(append(&writer, batch, LEDGER_DEADLINE_MS), SINK_UNKNOWN);
    ck_assert_uint_eq(proxy_acted(proxy), 1);
    ck_assert_int_eq(is_there(&writer, batch), _i != 0);
    ck_assert_int_eq(append(&writer, batch, LEDGER_DEADLINE_MS),
                     _i == 0 ? SINK_STORED : SINK_CONFLICT);
    settle(&writer, batch);
    ck_assert_int_eq(confirm(&writer, &writer.head, LEDGER_DEADLINE_MS), SINK_STORED);
    end(&writer);
    proxy_free(proxy);
}
END_TEST

static pid_t committing_backend(const struct writer *writer)
{
    AR_AUTO_FREE char *pid =
        postgres_sql(writer->ledger.url, "SELECT pid FROM pg_stat_activity WHERE application_name "
                                         "= 'auditrund' AND state = 'idle in transaction' AND "
                                         "datname = current_database()");
    ck_assert(pid && pid[0]);
    return (pid_t)strtol(pid, NULL, 10);
}

/* COMMIT is on its way for longer than anybody waits: in the net, or in a backend that is stopped. A
 * second attempt does not overtake it, and does not come twice when it arrives at last. */
START_TEST(test_late_commit)
{
    struct writer writer;
    bool stopped = _i == 1;
    struct proxy *proxy = start_proxy(server);
    begin_behind(&writer, server, proxy);
    grow(&writer, 1);
    struct batch *batch = make_batch(&writer, 3);
    proxy_set(proxy, PROXY_HOLD_BEFORE, 1);
    send_batch(&writer, batch, 2 * SHORT_MS);
    wait_for_proxy(&writer, proxy, 1);
    pid_t pid = committing_backend(&writer);
    if (stopped) {
        ck_assert_int_eq(kill(pid, SIGSTOP), 0);
        proxy_release(proxy);
    }
    ledger_wait(writer.ledger.base, &batch->done);
    ck_assert_int_eq(batch->outcome, SINK_UNKNOWN);
    ck_assert(!is_there(&writer, batch));
    ck_assert_int_eq(append(&writer, batch, SHORT_MS), SINK_NOT_STORED);
    if (stopped)
        ck_assert_int_eq(kill(pid, SIGCONT), 0);
    else
        proxy_release(proxy);
    ck_assert_int_eq(append(&writer, batch, LEDGER_DEADLINE_MS), SINK_CONFLICT);
    settle(&writer, batch);
    end(&writer);
    proxy_free(proxy);
}
END_TEST

/* The backend, or the postmaster, is killed while COMMIT is on its way to it. */
START_TEST(test_killed_at_commit)
{
    struct writer writer;
    struct postgres_server *own = postgres_start();
    ck_assert_ptr_nonnull(own);
    struct proxy *proxy = start_proxy(own);
    begin_behind(&writer, own, proxy);
    grow(&writer, 1);
    struct batch *batch = make_batch(&writer, 3);
    proxy_set(proxy, PROXY_HOLD_BEFORE, 1);
    send_batch(&writer, batch, LEDGER_DEADLINE_MS);
    wait_for_proxy(&writer, proxy, 1);
    if (_i == 0)
        ck_assert_int_eq(kill(committing_backend(&writer), SIGKILL), 0);
    else
        postgres_kill(own);
    ledger_wait(writer.ledger.base, &batch->done);
    ck_assert_int_eq(batch->outcome, SINK_UNKNOWN);
    if (_i == 1) {
        ck_assert(!ledger_probe(&writer.ledger, LEDGER_DEADLINE_MS));
        ck_assert_str_ne(writer.ledger.sink->ops->problem(writer.ledger.sink), "");
        ck_assert(postgres_start_again(own));
    }
    settle(&writer, batch);
    ck_assert_str_eq(writer.ledger.sink->ops->problem(writer.ledger.sink), "");
    end(&writer);
    proxy_free(proxy);
    postgres_free(own);
}
END_TEST

/* After the answer was held back, the server dies: what it has committed is still there. */
START_TEST(test_killed_after_commit)
{
    struct writer writer;
    struct postgres_server *own = postgres_start();
    ck_assert_ptr_nonnull(own);
    struct proxy *proxy = start_proxy(own);
    begin_behind(&writer, own, proxy);
    grow(&writer, 1);
    struct batch *batch = make_batch(&writer, 3);
    proxy_set(proxy, PROXY_HOLD_AFTER, 1);
    send_batch(&writer, batch, 2 * SHORT_MS);
    wait_for_proxy(&writer, proxy, 1);
    postgres_kill(own);
    ledger_wait(writer.ledger.base, &batch->done);
    ck_assert_int_eq(batch->outcome, SINK_UNKNOWN);
    ck_assert(postgres_start_again(own));
    proxy_cut(proxy);
    ck_assert(is_there(&writer, batch));
    settle(&writer, batch);
    end(&writer);
    proxy_free(proxy);
    postgres_free(own);
}
END_TEST

enum { FAULT_CUT = PROXY_HOLD_AFTER + 1, FAULT_TERMINATE, FAULT_KILL, FAULTS };

static void strike(struct writer *writer, struct proxy *proxy, int fault)
{
    if (fault == FAULT_CUT)
        proxy_cut(proxy);
    else if (fault == FAULT_TERMINATE)
        (void)postgres_signal_backends(writer->ledger.url, "auditrund", SIGTERM);
    else if (fault == FAULT_KILL)
        (void)postgres_signal_backends(writer->ledger.url, "auditrund", SIGKILL);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given ? strtoull(given, NULL, 10) : otherwise;
}

/* Batch after batch, with a fault of any kind at any moment. AUDITRUN_SEED has it again,
 * AUDITRUN_ROUNDS makes it longer. */
START_TEST(test_random_faults)
{
    struct writer writer;
    struct records_chain dice;
    uint64_t seed = number_from("AUDITRUN_SEED", (uint64_t)time(NULL));
    uint64_t rounds = number_from("AUDITRUN_ROUNDS", 40);
    (void)fprintf(stderr, "AUDITRUN_SEED=%llu\n", (unsigned long long)seed);
    records_begin(&dice, seed | 1);
    struct proxy *proxy = start_proxy(server);
    begin_behind(&writer, server, proxy);
    grow(&writer, 1);
    for (uint64_t round = 0; round < rounds; round++) {
        int fault = (int)(records_random(&dice) >> 11) % FAULTS;
        struct batch *batch = make_batch(&writer, 1 + (size_t)(records_random(&dice) >> 11) % 20);
        proxy_set(proxy, fault < FAULT_CUT ? (enum proxy_act)fault : PROXY_PASS, 1);
        send_batch(&writer, batch, SHORT_MS);
        for (uint64_t turns = (records_random(&dice) >> 11) % 6; turns > 0; turns--)
            ck_assert_int_ge(event_base_loop(writer.ledger.base, EVLOOP_NONBLOCK), 0);
        strike(&writer, proxy, fault);
        ledger_wait(writer.ledger.base, &batch->done);
        proxy_set(proxy, PROXY_PASS, 0);
        proxy_release(proxy);
        settle(&writer, batch);
    }
    end(&writer);
    proxy_free(proxy);
}
END_TEST

/* ---- a full disk ---------------------------------------------------------------------------- */

START_TEST(test_full_disk)
{
    struct writer writer;
    const struct postgres_options options = {.disk_bytes = DISK_BYTES,
                                             .settings = "max_wal_size = 8MB\n"
                                                         "min_wal_size = 2MB\n"};
    if (!postgres_has_disks()) {
        (void)fputs("SKIPPED: test_full_disk needs the right to mount\n", stderr);
        return;
    }
    struct postgres_server *own = postgres_start_with(&options);
    ck_assert_ptr_nonnull(own);
    begin(&writer, own);
    grow(&writer, 10);
    ck_assert(postgres_fill_disk(own));
    struct batch *batch = NULL;
    for (int i = 0; i < 50; i++) { /* what the tables have room for may still be stored */
        batch = make_batch(&writer, 500);
        if (append(&writer, batch, LEDGER_DEADLINE_MS) != SINK_STORED)
            break;
        settle(&writer, batch);
    }
    ck_assert(batch->outcome == SINK_NOT_STORED || batch->outcome == SINK_UNKNOWN);
    if (batch->outcome == SINK_NOT_STORED)
        ck_assert_str_eq(writer.ledger.sink->ops->problem(writer.ledger.sink), "full");
    postgres_free_disk(own);
    settle(&writer, batch);
    ck_assert_str_eq(writer.ledger.sink->ops->problem(writer.ledger.sink), "");
    end(&writer);
    postgres_free(own);
}
END_TEST

/* ---- two servers (C26) ---------------------------------------------------------------------- */

enum { BY_CANCEL, BY_TERMINATION, BY_DEADLINE, WAYS };

static const char waiting[] = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";

static void interrupt(struct writer *writer, int way)
{
    static const char *const sql[WAYS] = {
        [BY_CANCEL] = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
                      "WHERE wait_event = 'SyncRep'",
        [BY_TERMINATION] = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                           "WHERE wait_event = 'SyncRep'"};
    wait_until(writer, waiting, "1");
    if (sql[way])
        ck_assert(postgres_run(writer->ledger.url, sql[way]));
}

/* Committed here, not there: unknown, whoever ends the wait; and although the rows can be seen on
 * the primary afterwards, nothing confirms them. The new primary has none of them and gets them. */
START_TEST(test_commit_without_standby)
{
    struct writer writer;
    struct pair pair;
    char url[URL_BYTES];
    ck_assert(pair_begin(&pair));
    pair_url(&pair, url);
    begin_on_pair(&writer, &pair, url);
    grow(&writer, 3);
    ck_assert_int_eq(confirm(&writer, &writer.head, LEDGER_DEADLINE_MS), SINK_STORED);
    pair_stop_standby(&pair, PAIR_SECOND);
    struct batch *batch = make_batch(&writer, 20);
    send_batch(&writer, batch, _i == BY_DEADLINE ? 3 * SHORT_MS : LEDGER_DEADLINE_MS);
    interrupt(&writer, _i);
    ledger_wait(writer.ledger.base, &batch->done);
    ck_assert_int_eq(batch->outcome, SINK_UNKNOWN);
    const struct sink_head after = ledger_chain_head(&writer.chain);
    if (_i == BY_DEADLINE) {
        ck_assert(!is_there(&writer, batch));
    } else {
        ck_assert(is_there(&writer, batch));
        ck_assert_int_eq(confirm(&writer, &after, 2 * SHORT_MS), SINK_UNKNOWN);
    }
    ck_assert(pair_fail_over(&pair, PAIR_SECOND));
    (void)snprintf(writer.ledger.url, sizeof(writer.ledger.url), "%s",
                   pair_url_of(&pair, PAIR_SECOND));
    ck_assert(!is_there(&writer, batch));
    ck_assert_int_eq(confirm(&writer, &after, LEDGER_DEADLINE_MS), SINK_CONFLICT);
    settle(&writer, batch);
    ck_assert(pair_rejoin(&pair, PAIR_FIRST));
    grow(&writer, 2);
    ck_assert_int_eq(confirm(&writer, &writer.head, LEDGER_DEADLINE_MS), SINK_STORED);
    end(&writer);
    pair_end(&pair);
}
END_TEST

/* The old primary comes back read-only behind the same address: it is not used, and the writable one
 * is found, among the hosts or when the address is given to it. */
START_TEST(test_old_primary_is_back)
{
    struct writer writer;
    struct pair pair;
    char host[PROXY_HOST_BYTES], url[URL_BYTES], path[POSTGRES_PATH_BYTES];
    ck_assert(pair_begin(&pair));
    struct proxy *proxy = start_proxy(pair.servers[PAIR_FIRST]);
    proxy_host(proxy, host);
    (void)snprintf(url, sizeof(url), "postgres:%s user=tester dbname=postgres", host);
    begin_on_pair(&writer, &pair, url);
    grow(&writer, 3);
    ck_assert(pair_fail_over(&pair, PAIR_SECOND));
    ck_assert(pair_rejoin(&pair, PAIR_FIRST));
    struct batch *batch = make_batch(&writer, 2);
    ck_assert(!ledger_probe(&writer.ledger, LEDGER_DEADLINE_MS));
    ck_assert_int_eq(append(&writer, batch, SHORT_MS), SINK_NOT_STORED);
    ck_assert_str_eq(writer.ledger.sink->ops->problem(writer.ledger.sink), "read_only");
    postgres_socket(pair.servers[PAIR_SECOND], path);
    proxy_retarget(proxy, path);
    (void)snprintf(writer.ledger.url, sizeof(writer.ledger.url), "%s",
                   pair_url_of(&pair, PAIR_SECOND));
    settle(&writer, batch);
    pair_url(&pair, url);
    use_url(&writer, url);
    grow(&writer, 2);
    end(&writer);
    proxy_free(proxy);
    pair_end(&pair);
}
END_TEST

/* A server that is told to take no writes from now on, while a connection is open. */
START_TEST(test_read_only_from_now_on)
{
    struct writer writer;
    begin(&writer, server);
    grow(&writer, 1);
    ck_assert(
        postgres_run(postgres_url(server), "ALTER SYSTEM SET default_transaction_read_only = on"));
    ck_assert(postgres_run(postgres_url(server), "SELECT pg_reload_conf()"));
    wait_until(&writer, "SHOW default_transaction_read_only", "on");
    struct batch *batch = make_batch(&writer, 2);
    for (int i = 0; i < RETRIES && append(&writer, batch, LEDGER_DEADLINE_MS) == SINK_STORED; i++)
        settle(&writer, AR_TAKE(batch)), batch = make_batch(&writer, 2);
    ck_assert_int_eq(batch->outcome, SINK_NOT_STORED);
    ck_assert(!ledger_probe(&writer.ledger, LEDGER_DEADLINE_MS));
    ck_assert_str_eq(writer.ledger.sink->ops->problem(writer.ledger.sink), "read_only");
    ck_assert(
        postgres_run(postgres_url(server), "ALTER SYSTEM RESET default_transaction_read_only"));
    ck_assert(postgres_run(postgres_url(server), "SELECT pg_reload_conf()"));
    settle(&writer, batch);
    end(&writer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("postgres_failover");
    TCase *one = tcase_create("one_server"), *two = tcase_create("two_servers");
    tcase_add_unchecked_fixture(one, start_server, stop_server);
    tcase_set_timeout(one, 300);
    tcase_set_timeout(two, 300);
    tcase_add_loop_test(one, test_cut_at_commit, 0, 2);
    tcase_add_loop_test(one, test_late_commit, 0, 2);
    tcase_add_loop_test(one, test_killed_at_commit, 0, 2);
    tcase_add_test(one, test_killed_after_commit);
    tcase_add_test(one, test_random_faults);
    tcase_add_test(one, test_full_disk);
    tcase_add_test(one, test_read_only_from_now_on);
    tcase_add_loop_test(two, test_commit_without_standby, 0, WAYS);
    tcase_add_test(two, test_old_primary_is_back);
    suite_add_tcase(suite, one);
    suite_add_tcase(suite, two);
    return suite_run(suite);
}

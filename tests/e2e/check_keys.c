/*
 * check_keys.c - idempotency keys: two daemons on one ledger, many callers at once, and a crash.
 *
 * The executor is a shell script behind auditrun-executor-once that notes each run in a file: what is
 * counted is what ran, not what was answered.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/postgres.h"

#define CALLERS 20

static const char script[] =
    "#!/bin/sh\n"
    "if [ \"$1\" = capabilities ]; then\n"
    "    echo '{\"contract\":1,\"name\":\"noting\",\"version\":\"1\",\"languages\":[{\"name\":"
    "\"noting\",\"version\":\"1\"}],\"network\":[\"none\"],\"data_api\":false,\"secrets\":false,"
    "\"filesystem\":{\"read\":false,\"write\":false},\"limits\":{},\"isolation\":{}}'\n"
    "    exit 0\n"
    "fi\n"
    "spec=$(cat)\n"
    "echo ran >>\"${0%/*}/ran\"\n"
    "case $spec in *'\"long\"'*) sleep 60 ;; *) sleep 0.3 ;; esac\n"
    "echo '{\"outcome\":\"exited\",\"exit_code\":0}'\n";

/* Two daemons, each with a client, and what must have come of it so far. */
struct pair {
    struct daemon *daemons[2];
    struct client *clients[2];
    char *ran; /* the file */
    size_t runs, rows;
};

static void configure(const struct pair *pair, struct daemon *daemon)
{
    const char *build = getenv("AUDITRUN_BUILD");
    AR_AUTO_FREE char *config = NULL;
    ck_assert_int_gt(asprintf(&config,
                              "[executor namespace]\n-\n[executor noting]\nprogram = %s/"
                              "auditrun-executor-once\nargs = %s/noting\nslots = 2\n",
                              build ? build : "build", daemon_folder(pair->daemons[0])),
                     0);
    daemon_configure(daemon, config);
}

static struct pair pair_open(const char *url)
{
    struct pair pair = {0};
    pair.daemons[0] = daemon_prepare(&(struct daemon_options){.ledger_url = url});
    pair.daemons[1] =
        daemon_prepare(&(struct daemon_options){.ledger_url = daemon_ledger(pair.daemons[0])});
    AR_AUTO_FREE char *path = daemon_path(pair.daemons[0], "noting");
    daemon_write_file(path, script, 0755);
    pair.ran = daemon_path(pair.daemons[0], "ran");
    daemon_write_file(pair.ran, "", 0644);
    for (int i = 0; i < 2; i++) {
        configure(&pair, pair.daemons[i]);
        daemon_start_again(pair.daemons[i]);
        pair.clients[i] = daemon_connect(pair.daemons[i]);
    }
    return pair;
}

static void pair_close(struct pair *pair)
{
    for (int i = 1; i >= 0; i--) {
        client_disconnect(pair->clients[i]);
        daemon_free(pair->daemons[i]);
    }
    free(pair->ran);
}

static size_t count_ran(const struct pair *pair)
{
    AR_AUTO_FREE char *text = daemon_read_file(pair->ran);
    return strlen(text) / strlen("ran\n");
}

/* So much has run, and so much is in the ledger. */
static void pair_expect(const struct pair *pair)
{
    ck_assert_uint_eq(count_ran(pair), pair->runs);
    rows_expect(daemon_ledger(pair->daemons[0]), pair->rows);
}

static json_t *key_params(const char *key, const char *more)
{
    json_t *params = client_params("noting", "code", more);
    ck_assert_int_eq(json_object_set_new(params, "idempotency_key", json_string(key)), 0);
    return params;
}

static void expect_same_run(const json_t *one, const json_t *other)
{
    static const char *const members[] = {"run_id", "status",      "reason", "record",
                                          "grant",  "code_sha256", "usage",  "provider"};
    for (size_t i = 0; i < AR_COUNT(members); i++)
        ck_assert_msg(
            json_equal(json_object_get(one, members[i]), json_object_get(other, members[i])),
            "another %s", members[i]);
}

/* All at once, to both: one of them runs, all get its outcome. */
static void check_copies(struct pair *pair)
{
    json_t *first = NULL;
    for (int id = 0; id < CALLERS; id++)
        for (int i = 0; i < 2; i++)
            client_request(pair->clients[i], id, "run", key_params("k1", NULL));
    for (int id = 0; id < CALLERS; id++) {
        for (int i = 0; i < 2; i++) {
            AR_AUTO_JSON json_t *result = client_result(pair->clients[i], id);
            client_expect(result, "succeeded", "exit_zero");
            if (!first)
                first = json_incref(result);
            expect_same_run(first, result);
        }
    }
    rows_expect_result(daemon_ledger(pair->daemons[0]), first);
    json_decref(first);
    pair->runs++;
    pair->rows++;
    pair_expect(pair);
}

static void check_other_request(struct pair *pair)
{
    static const char *const others[] = {"{'code': 'other'}", "{'stdin': 'x'}", "{'args': ['x']}",
                                         "{'actor': 'actor-2'}",
                                         "{'grant': {'limits': {'wall_ms': 9999}}}"};
    for (size_t i = 0; i < AR_COUNT(others); i++) {
        AR_AUTO_JSON json_t *error =
            client_fail(pair->clients[i % 2], "run", key_params("k1", others[i]));
        client_expect_error(error, -32602, "/idempotency_key", "key_reused");
    }
    pair_expect(pair);
}

static bool second_has_started(void *context)
{
    const struct pair *pair = context;
    return count_ran(pair) == pair->runs + 1;
}

/* The first daemon is killed in the middle of the run. Who asks the second meanwhile waits, and gets
 * the outcome that the first records at its next start. */
static void check_crash(struct pair *pair)
{
    static const char long_args[] = "{'args': ['long']}";
    client_request(pair->clients[0], 1, "run", key_params("k2", long_args));
    ck_assert(processes_wait(second_has_started, pair, 10000));
    daemon_kill9(pair->daemons[0]);
    daemon_expect_nothing(pair->daemons[0], 2000);
    client_disconnect(pair->clients[0]);
    client_request(pair->clients[1], 2, "run", key_params("k2", long_args));
    ck_assert_int_gt(e2e_status(pair->clients[1], "runs", "total"), 0);
    daemon_start_again(pair->daemons[0]);
    pair->clients[0] = daemon_connect(pair->daemons[0]);
    AR_AUTO_JSON json_t *waited = client_result(pair->clients[1], 2);
    client_expect(waited, "interrupted", "host_restarted");
    AR_AUTO_JSON json_t *again = client_call(pair->clients[0], "run", key_params("k2", long_args));
    expect_same_run(waited, again);
    rows_expect_result(daemon_ledger(pair->daemons[0]), again);
    pair->runs++;
    pair->rows++;
    pair_expect(pair);
}

static void check_other_company(struct pair *pair)
{
    AR_AUTO_JSON json_t *acme = client_call(pair->clients[0], "run", key_params("k1", NULL));
    AR_AUTO_JSON json_t *globex =
        client_call(pair->clients[1], "run", key_params("k1", "{'company': 'globex'}"));
    client_expect(globex, "succeeded", "exit_zero");
    ck_assert(!json_equal(json_object_get(acme, "run_id"), json_object_get(globex, "run_id")));
    pair->runs++;
    pair->rows++;
    pair_expect(pair);
}

/* A run that was not let in does not take its key: each try is judged anew, and has its own row. */
static void check_refused(struct pair *pair)
{
    static const char denied[] = "{'grant': {'secrets': ['KEY']}}";
    AR_AUTO_JSON json_t *first = client_call(pair->clients[0], "run", key_params("k3", denied));
    AR_AUTO_JSON json_t *second = client_call(pair->clients[1], "run", key_params("k3", denied));
    client_expect(first, "capability_denied", "not_enforceable");
    client_expect(second, "capability_denied", "not_enforceable");
    ck_assert(!json_equal(json_object_get(first, "run_id"), json_object_get(second, "run_id")));
    pair->rows += 2;
    pair_expect(pair);
    AR_AUTO_JSON json_t *done = client_call(pair->clients[1], "run", key_params("k3", NULL));
    client_expect(done, "succeeded", "exit_zero");
    AR_AUTO_JSON json_t *repeat = client_call(pair->clients[0], "run", key_params("k3", NULL));
    expect_same_run(done, repeat);
    AR_AUTO_JSON json_t *found = client_call(
        pair->clients[0], "record", client_json("{'company': 'acme', 'idempotency_key': 'k3'}"));
    ck_assert(json_equal(json_object_get(json_object_get(found, "record"), "run_id"),
                         json_object_get(done, "run_id")));
    pair->runs++;
    pair->rows++;
    pair_expect(pair);
}

static void check_all(const char *url)
{
    struct pair pair = pair_open(url);
    check_copies(&pair);
    check_other_request(&pair);
    check_crash(&pair);
    check_other_company(&pair);
    check_refused(&pair);
    pair_close(&pair);
}

START_TEST(test_keys_on_one_sqlite_file)
{
    check_all(NULL);
}
END_TEST

START_TEST(test_keys_on_one_postgres_database)
{
    struct postgres_server *server = postgres_start();
    char url[POSTGRES_URL_BYTES];
    ck_assert_ptr_nonnull(server);
    ck_assert(postgres_new_database(server, url));
    check_all(url);
    postgres_free(server);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_keys_on_one_sqlite_file,
                                          &test_keys_on_one_postgres_database, NULL};
    return e2e_main("keys", tests);
}

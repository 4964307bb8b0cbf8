/*
 * check_failover.c - the PostgreSQL ledger fails under a daemon with 64 runs in flight: in the middle of
 * COMMIT, with its standby, with its disk, or by coming back from yesterday; and two daemons take
 * themselves for the same writer.
 *
 * After each: every run that was told or kept is one row, nobody else's row is there, each chain is whole
 * by verify and by SQL. Who was in doubt was told the audit failure with the true status.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/load.h"
#include "tests/lib/pair.h"
#include "tests/lib/proxy.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define WAIT_MS    30000
#define URL_BYTES  (2 * POSTGRES_URL_BYTES)
#define DISK_BYTES ((size_t)112 << 20)
#define SOME       40 /* runs that show that it goes on */

static const char *const well[] = {"well", NULL};
static const char config_text[] = "[ledger]\ndeadline = 1s\n";

/* A daemon under load, and the way to its ledger. */
struct site {
    struct proxy *proxy; /* NULL: none */
    char url[URL_BYTES]; /* past the proxy */
    struct daemon *daemon;
    struct load *load;
    bool restarted; /* what is asked of a daemon at its very end may get no answer */
};

/* ---- questions to the server ------------------------------------------------------------------ */

/* Asks until the answer is this one; a server that is just starting is asked again. */
static void await_sql(const char *url, const char *question, const char *answer)
{
    int64_t deadline = processes_now_ms() + WAIT_MS;
    for (;;) {
        AR_AUTO_FREE char *said = postgres_sql(url, question);
        if (said && strcmp(said, answer) == 0)
            return;
        ck_assert_msg(processes_now_ms() < deadline, "in vain: %s", question);
        (void)poll(NULL, 0, 20);
    }
}

static void expect_sql(const char *url, const char *question, const char *answer)
{
    AR_AUTO_FREE char *said = postgres_sql(url, question);
    ck_assert_ptr_nonnull(said);
    ck_assert_str_eq(said, answer);
}

static pid_t backend_where(const char *url, const char *condition)
{
    AR_AUTO_FREE char *question = NULL;
    int64_t deadline = processes_now_ms() + WAIT_MS;
    ck_assert_int_gt(asprintf(&question,
                              "SELECT pid FROM pg_stat_activity WHERE application_name = "
                              "'auditrund' AND datname = current_database() AND %s",
                              condition),
                     0);
    for (;;) {
        AR_AUTO_FREE char *pid = postgres_sql(url, question);
        if (pid && pid[0])
            return (pid_t)strtol(pid, NULL, 10);
        ck_assert_msg(processes_now_ms() < deadline, "no backend where %s", condition);
        (void)poll(NULL, 0, 5);
    }
}

/* COMMIT waits for a standby that does not exist; "" for nobody. */
static void wait_for_standby(const char *url, const char *name)
{
    AR_AUTO_FREE char *sql = NULL;
    ck_assert_int_gt(asprintf(&sql, "ALTER SYSTEM SET synchronous_standby_names = '%s'", name), 0);
    await_sql(url, sql, "");
    ck_assert(postgres_run(url, "SELECT pg_reload_conf()"));
    await_sql(url, "SHOW synchronous_standby_names", name);
}

/* ---- a site ----------------------------------------------------------------------------------- */

static void start(struct site *site, const char *url)
{
    static const struct load_options sixty_four = {
        .name = "run", .clients = 32, .in_flight = 2, .sleep_ms = 40};
    AR_AUTO_FREE char *config = fake_config(well, 8, config_text);
    struct daemon_options options = {.config = config, .ledger_url = url};
    site->daemon = daemon_new(&options);
    site->load = load_begin(site->daemon, &sixty_four);
    load_go(site->load);
    load_await_told(site->load, SOME, WAIT_MS);
}

static struct proxy *start_proxy(const struct postgres_server *server)
{
    char path[POSTGRES_PATH_BYTES];
    postgres_socket(server, path);
    struct proxy *proxy = proxy_start(path, false);
    ck_assert_ptr_nonnull(proxy);
    return proxy;
}

/* A new database of the server, behind a proxy. */
static void open_site(struct site *site, struct postgres_server *server)
{
    char url[URL_BYTES], host[PROXY_HOST_BYTES];
    *site = (struct site){.proxy = start_proxy(server)};
    ck_assert(postgres_new_database(server, site->url));
    proxy_host(site->proxy, host);
    (void)snprintf(url, sizeof(url), "postgres:%s user=tester %s", host,
                   strstr(site->url, "dbname="));
    start(site, url);
}

/* Every run has its end. */
static void close_site(struct site *site)
{
    load_rest(site->load, WAIT_MS);
    struct load_counts counts = load_counts(site->load);
    size_t rows =
        load_expect_rows((const struct load *const *)&site->load, 1, site->url, NULL, WAIT_MS);
    ck_assert_uint_ge(rows, (size_t)(counts.told + counts.kept));
    ck_assert_uint_le(rows, (size_t)counts.asked);
    if (!site->restarted)
        ck_assert_int_eq(counts.asked, counts.told + counts.kept);
    ck_assert_int_eq(daemon_terminate(site->daemon), 0);
    load_expect_nothing_open(site->daemon);
    expect_sql(site->url, "SELECT count(*) FROM auditrun.events WHERE kind = 'gap'", "0");
    load_expect_sql_verify(site->url);
    load_free(site->load);
    daemon_free(site->daemon);
    proxy_free(site->proxy);
}

static void expect_service(const struct site *site)
{
    load_await_told(site->load, SOME, WAIT_MS);
}

/* ---- in the middle of COMMIT (C25) ------------------------------------------------------------ */

static struct postgres_server *server;

static void start_server(void)
{
    server = postgres_start();
    ck_assert_ptr_nonnull(server);
}

static void stop_server(void)
{
    postgres_free(server);
    server = NULL;
}

/* (a) before it is passed on; (b) after it, with the answer. */
START_TEST(the_connection_is_cut)
{
    struct site site;
    open_site(&site, server);
    for (unsigned i = 1; i <= 3; i++) {
        proxy_set(site.proxy, _i == 0 ? PROXY_CUT_BEFORE : PROXY_CUT_AFTER, 1);
        ck_assert(proxy_wait(site.proxy, i));
        expect_service(&site);
    }
    close_site(&site);
}
END_TEST

/* A backend that has all of a batch but COMMIT, which waits in the net. */
static pid_t backend_before_commit(const struct site *site)
{
    unsigned acted = proxy_acted(site->proxy);
    proxy_set(site->proxy, PROXY_HOLD_BEFORE, 1);
    ck_assert(proxy_wait(site->proxy, acted + 1));
    return backend_where(site->url, "state = 'idle in transaction'");
}

/* One that is in COMMIT. */
static pid_t backend_in_commit(const struct site *site)
{
    wait_for_standby(site->url, "nobody");
    return backend_where(site->url, "wait_event = 'SyncRep'");
}

/* (c) */
START_TEST(the_backend_is_killed)
{
    struct site site;
    open_site(&site, server);
    pid_t pid = _i == 0 ? backend_before_commit(&site) : backend_in_commit(&site);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    if (_i == 0)
        proxy_release(site.proxy);
    else
        wait_for_standby(site.url, "");
    expect_service(&site);
    close_site(&site);
}
END_TEST

/* (d) It stands still for longer than anybody waits, and goes on: with COMMIT only just received, or in
 * the middle of it. */
START_TEST(the_backend_is_stopped)
{
    struct site site;
    open_site(&site, server);
    pid_t pid = _i == 0 ? backend_before_commit(&site) : backend_in_commit(&site);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    if (_i == 0)
        proxy_release(site.proxy);
    else
        wait_for_standby(site.url, "");
    load_await_kept(site.load, SOME, WAIT_MS);
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    expect_service(&site);
    close_site(&site);
}
END_TEST

/* The daemon ends while it waits to hear what became of its COMMIT: it keeps what it has, and the next one
 * resolves it. */
START_TEST(the_daemon_ends_meanwhile)
{
    struct site site;
    open_site(&site, server);
    (void)backend_before_commit(&site);
    load_await_kept(site.load, SOME, WAIT_MS);
    ck_assert_int_eq(daemon_terminate(site.daemon), 0);
    site.restarted = true;
    daemon_start_again(site.daemon);
    proxy_release(site.proxy);
    expect_service(&site);
    close_site(&site);
}
END_TEST

/* The daemon ends while it asks for what the one before has left. */
START_TEST(the_daemon_ends_in_its_recovery)
{
    struct site site;
    int status;
    open_site(&site, server);
    daemon_kill9(site.daemon);
    daemon_launch_fault(site.daemon, "recovery_asked:1:stop");
    ck_assert_int_eq(waitpid(daemon_pid(site.daemon), &status, WUNTRACED), daemon_pid(site.daemon));
    ck_assert(WIFSTOPPED(status));
    ck_assert_int_eq(kill(daemon_pid(site.daemon), SIGTERM), 0);
    ck_assert_int_eq(kill(daemon_pid(site.daemon), SIGCONT), 0);
    ck_assert_int_eq(daemon_wait(site.daemon), 0);
    site.restarted = true;
    daemon_start_again(site.daemon);
    expect_service(&site);
    close_site(&site);
}
END_TEST

/* ---- the server as a whole -------------------------------------------------------------------- */

START_TEST(the_postmaster_is_killed)
{
    struct site site = {0};
    struct postgres_server *own = postgres_start();
    ck_assert_ptr_nonnull(own);
    (void)snprintf(site.url, sizeof(site.url), "%s", postgres_url(own));
    start(&site, site.url);
    for (int i = 0; i < 2; i++) {
        postgres_kill(own);
        load_await_kept(site.load, SOME, WAIT_MS);
        ck_assert(postgres_start_again(own));
        expect_service(&site);
    }
    close_site(&site);
    postgres_free(own);
}
END_TEST

static bool serves(void *context)
{
    return postgres_run(context, "SELECT 1");
}

/* A server that gave up on the full disk is started again, as by whoever looks after it. */
START_TEST(the_disk_is_full)
{
    const struct postgres_options options = {
        .disk_bytes = DISK_BYTES, .settings = "max_wal_size = 8MB\nmin_wal_size = 2MB\n"};
    struct site site = {0};
    if (!postgres_has_disks()) {
        (void)fputs("SKIPPED: the_disk_is_full needs the right to mount\n", stderr);
        return;
    }
    struct postgres_server *own = postgres_start_with(&options);
    ck_assert_ptr_nonnull(own);
    (void)snprintf(site.url, sizeof(site.url), "%s", postgres_url(own));
    start(&site, site.url);
    ck_assert(postgres_fill_disk(own));
    load_await_kept(site.load, SOME, WAIT_MS);
    postgres_free_disk(own);
    if (!processes_wait(serves, site.url, 3000)) {
        postgres_stop_immediate(own);
        ck_assert(postgres_start_again(own));
    }
    expect_service(&site);
    close_site(&site);
    postgres_free(own);
}
END_TEST

/* ---- the standby (C26) ------------------------------------------------------------------------ */

static bool is_read_only(void *context)
{
    AR_AUTO_JSON json_t *status = client_call(context, "status", NULL);
    const json_t *ledger = json_object_get(status, "ledger");
    return strcmp(json_string_value(json_object_get(ledger, "problem")), "read_only") == 0;
}

/* The address of the ledger is the old primary's, which takes no writes: nothing is dispatched. */
static void expect_no_dispatch(const struct site *site)
{
    struct client *client = daemon_connect(site->daemon);
    ck_assert(processes_wait(is_read_only, client, WAIT_MS));
    struct load_counts before = load_counts(site->load);
    load_await_kept(site->load, SOME, WAIT_MS);
    ck_assert_int_eq(load_counts(site->load).told, before.told);
    client_disconnect(client);
}

/* Committed on the primary alone, which is then lost. By the addresses of both, or by one that is
 * given to the new primary later. */
START_TEST(the_standby_has_not_got_it)
{
    static const char *const sql[] = {
        "SELECT bool_and(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = "
        "'SyncRep'",
        "SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = "
        "'SyncRep'"};
    struct site site = {0};
    struct pair pair;
    char url[URL_BYTES], path[POSTGRES_PATH_BYTES], host[PROXY_HOST_BYTES];
    ck_assert(pair_begin(&pair));
    pair_url(&pair, url);
    if (_i == 1) {
        site.proxy = start_proxy(pair.servers[PAIR_FIRST]);
        proxy_host(site.proxy, host);
        (void)snprintf(url, sizeof(url), "postgres:%s user=tester dbname=postgres", host);
    }
    start(&site, url);
    pair_stop_standby(&pair, PAIR_SECOND);
    (void)backend_where(pair_url_of(&pair, PAIR_FIRST), "wait_event = 'SyncRep'");
    expect_sql(pair_url_of(&pair, PAIR_FIRST), sql[_i], "t");
    load_await_kept(site.load, SOME, WAIT_MS);
    ck_assert(pair_fail_over(&pair, PAIR_SECOND));
    (void)snprintf(site.url, sizeof(site.url), "%s", pair_url_of(&pair, PAIR_SECOND));
    if (_i == 0)
        expect_service(&site);
    ck_assert(pair_rejoin(&pair, PAIR_FIRST));
    if (_i == 1) {
        expect_no_dispatch(&site);
        postgres_socket(pair.servers[PAIR_SECOND], path);
        proxy_retarget(site.proxy, path);
    }
    expect_service(&site);
    expect_sql(site.url, "SELECT count(DISTINCT writer) FROM auditrun.runs", "1");
    close_site(&site);
    pair_end(&pair);
}
END_TEST

/* ---- two writers (C27) ------------------------------------------------------------------------ */

static void copy_journal(const struct daemon *from, const struct daemon *to)
{
    AR_AUTO_FREE char *files = NULL;
    int status;
    ck_assert_int_gt(asprintf(&files, "%s/.", daemon_journal(from)), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl("/bin/cp", "cp", "-a", files, daemon_journal(to), (char *)NULL);
        _exit(127);
    }
    ck_assert(waitpid(pid, &status, 0) == pid && status == 0);
}

static struct daemon *prepare_daemon(const char *url, bool first)
{
    AR_AUTO_FREE char *config = fake_config(well, 4, config_text);
    struct daemon_options options = {.config = config, .ledger_url = url, .without_ledger = !first};
    return daemon_prepare(&options);
}

START_TEST(a_state_directory_is_copied)
{
    static const struct load_options options[] = {
        {.name = "one", .clients = 16, .in_flight = 2, .sleep_ms = 5},
        {.name = "two", .clients = 16, .in_flight = 2, .sleep_ms = 5}};
    char url[POSTGRES_URL_BYTES];
    struct daemon *daemons[2];
    struct load *loads[2];
    ck_assert(postgres_new_database(server, url));
    for (int i = 0; i < 2; i++)
        daemons[i] = prepare_daemon(url, i == 0);
    daemon_start_again(daemons[0]);
    ck_assert_int_eq(daemon_terminate(daemons[0]), 0);
    copy_journal(daemons[0], daemons[1]);
    for (int i = 0; i < 2; i++)
        daemon_start_again(daemons[i]);
    for (int i = 0; i < 2; i++) {
        loads[i] = load_begin(daemons[i], &options[i]);
        load_go(loads[i]);
    }
    for (int i = 0; i < 2; i++)
        load_await_told(loads[i], 4 * SOME, WAIT_MS);
    for (int i = 0; i < 2; i++)
        load_rest(loads[i], WAIT_MS);
    size_t asked = (size_t)load_counts(loads[0]).asked + (size_t)load_counts(loads[1]).asked;
    ck_assert_uint_eq(load_expect_rows((const struct load *const *)loads, 2, url, NULL, WAIT_MS),
                      asked);
    expect_sql(url, "SELECT count(DISTINCT writer) > 1 FROM auditrun.runs", "t");
    expect_sql(url,
               "SELECT count(*) > 0 AND bool_and(detail ->> 'cause' = 'rows_of_another' AND "
               "seq = 1) FROM auditrun.events WHERE kind = 'gap'",
               "t");
    for (int i = 0; i < 2; i++) {
        load_free(loads[i]);
        daemon_free(daemons[i]);
    }
    load_expect_sql_verify(url);
}
END_TEST

/* Two hosts on one ledger, and its primary is killed under the load of both: each goes on in its own chain
 * at the new primary; nothing is lost and nothing is there twice. */
START_TEST(two_daemons_lose_their_primary)
{
    static const struct load_options options[] = {
        {.name = "one", .clients = 16, .in_flight = 2, .sleep_ms = 5},
        {.name = "two", .clients = 16, .in_flight = 2, .sleep_ms = 5}};
    char url[URL_BYTES];
    struct pair pair;
    struct daemon *daemons[2];
    struct load *loads[2];
    size_t asked = 0;
    ck_assert(pair_begin(&pair));
    pair_url(&pair, url);
    for (int i = 0; i < 2; i++) {
        daemons[i] = prepare_daemon(url, i == 0);
        daemon_start_again(daemons[i]);
        loads[i] = load_begin(daemons[i], &options[i]);
        load_go(loads[i]);
    }
    for (int i = 0; i < 2; i++)
        load_await_told(loads[i], 4 * SOME, WAIT_MS);
    ck_assert(pair_fail_over(&pair, PAIR_SECOND));
    const char *now = pair_url_of(&pair, PAIR_SECOND);
    for (int i = 0; i < 2; i++)
        load_await_told(loads[i], 4 * SOME, WAIT_MS);
    for (int i = 0; i < 2; i++) {
        load_rest(loads[i], WAIT_MS);
        struct load_counts counts = load_counts(loads[i]);
        ck_assert_int_eq(counts.asked, counts.told + counts.kept);
        asked += (size_t)counts.asked;
    }
    ck_assert_uint_eq(load_expect_rows((const struct load *const *)loads, 2, now, NULL, WAIT_MS),
                      asked);
    expect_sql(now, "SELECT count(DISTINCT writer) FROM auditrun.runs", "2");
    expect_sql(now, "SELECT count(*) FROM auditrun.events WHERE kind = 'gap'", "0");
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(daemon_terminate(daemons[i]), 0);
        load_expect_nothing_open(daemons[i]);
    }
    load_expect_sql_verify(now);
    for (int i = 0; i < 2; i++) {
        load_free(loads[i]);
        daemon_free(daemons[i]);
    }
    pair_end(&pair);
}
END_TEST

/* The old one serves, or is held by SIGSTOP with a batch at the ledger: a second one on its journal does
 * not start, and the old one goes on. */
START_TEST(a_journal_is_taken)
{
    static const struct load_options options = {
        .name = "run", .clients = 16, .in_flight = 2, .sleep_ms = 5};
    char url[POSTGRES_URL_BYTES];
    ck_assert(postgres_new_database(server, url));
    struct daemon *old = prepare_daemon(url, true), *second = prepare_daemon(url, false);
    AR_AUTO_FREE char *journal = NULL;
    ck_assert_int_gt(
        asprintf(&journal, "%s[journal]\ndirectory = %s\n", config_text, daemon_journal(old)), 0);
    AR_AUTO_FREE char *config = fake_config(well, 4, journal);
    daemon_configure(second, config);
    daemon_launch_fault(old, "batch_sent:20:stop");
    daemon_await(old);
    struct load *load = load_begin(old, &options);
    load_go(load);
    int status;
    ck_assert_int_eq(waitpid(daemon_pid(old), &status, WUNTRACED), daemon_pid(old));
    ck_assert(WIFSTOPPED(status));
    ck_assert_int_ne(daemon_start_in_vain(second), 0);
    ck_assert_int_eq(kill(daemon_pid(old), SIGCONT), 0);
    load_await_told(load, SOME, WAIT_MS);
    ck_assert_int_ne(daemon_start_in_vain(second), 0);
    load_await_told(load, SOME, WAIT_MS);
    load_rest(load, WAIT_MS);
    ck_assert_uint_eq(load_expect_rows((const struct load *const *)&load, 1, url, NULL, WAIT_MS),
                      (size_t)load_counts(load).asked);
    expect_sql(url, "SELECT count(DISTINCT writer) FROM auditrun.runs", "1");
    load_free(load);
    daemon_free(second);
    daemon_free(old);
}
END_TEST

/* ---- a ledger of yesterday -------------------------------------------------------------------- */

static struct load *play_load(const struct daemon *daemon, const char *name)
{
    const struct load_options options = {
        .name = name, .clients = 32, .in_flight = 2, .sleep_ms = 5};
    struct load *load = load_begin(daemon, &options);
    load_go(load);
    load_await_told(load, SOME, WAIT_MS);
    load_rest(load, WAIT_MS);
    return load;
}

/* The rows since then are gone, which is said: under a new name, in its first row. */
START_TEST(a_dump_is_restored)
{
    char url[POSTGRES_URL_BYTES];
    bool runs_meanwhile = _i == 1;
    ck_assert(postgres_new_database(server, url));
    struct daemon *daemon = prepare_daemon(url, true);
    daemon_start_again(daemon);
    struct load *before = play_load(daemon, "before");
    ck_assert(postgres_dump(server, url));
    struct load *lost = play_load(daemon, "lost");
    if (!runs_meanwhile)
        ck_assert_int_eq(daemon_terminate(daemon), 0);
    ck_assert(postgres_restore(server, url));
    if (!runs_meanwhile)
        daemon_start_again(daemon);
    const struct load *loads[2] = {before, play_load(daemon, "after")};
    size_t rows = (size_t)load_counts(loads[0]).asked + (size_t)load_counts(loads[1]).asked;
    ck_assert_uint_eq(load_expect_rows(loads, 2, url, NULL, WAIT_MS), rows);
    expect_sql(url,
               "SELECT string_agg(concat_ws(' ', seq, detail ->> 'cause'), ',') FROM "
               "auditrun.events WHERE kind = 'gap'",
               "1 rows_missing");
    expect_sql(url, "SELECT count(DISTINCT writer) FROM auditrun.runs", "2");
    daemon_free(daemon);
    load_expect_sql_verify(url);
    load_free(before);
    load_free(lost);
    load_free((struct load *)(uintptr_t)loads[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failover");
    TCase *commit = e2e_case(suite, "commit"), *whole = e2e_case(suite, "server"),
          *two = e2e_case(suite, "standby"), *writers = e2e_case(suite, "writers");
    tcase_add_unchecked_fixture(commit, start_server, stop_server);
    tcase_add_loop_test(commit, the_connection_is_cut, 0, 2);
    tcase_add_loop_test(commit, the_backend_is_killed, 0, 2);
    tcase_add_loop_test(commit, the_backend_is_stopped, 0, 2);
    tcase_add_test(commit, the_daemon_ends_meanwhile);
    tcase_add_test(commit, the_daemon_ends_in_its_recovery);
    tcase_add_test(whole, the_postmaster_is_killed);
    tcase_add_test(whole, the_disk_is_full);
    tcase_add_loop_test(two, the_standby_has_not_got_it, 0, 2);
    tcase_add_test(two, two_daemons_lose_their_primary);
    tcase_add_unchecked_fixture(writers, start_server, stop_server);
    tcase_add_test(writers, a_state_directory_is_copied);
    tcase_add_test(writers, a_journal_is_taken);
    tcase_add_loop_test(writers, a_dump_is_restored, 0, 2);
    return e2e_run(suite);
}

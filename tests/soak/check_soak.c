/*
 * check_soak.c - one fault after another, of any kind at any moment, under 64 clients: a daemon that is
 * killed, a connection that is cut in COMMIT, a backend that is killed or stands still, a server that is
 * gone, a disk that is full, a standby that takes over.
 *
 * usage: check_soak (see `make soak`). SOAK_SECONDS (120) is how long; SOAK_SEED is where the schedule
 * comes from: kinds, places and durations are the same with the same seed, as far as that goes with what
 * the machine does in between.
 *
 * At the end the whole balance must be right: each run that was answered, or was durable in the journal
 * of a daemon that was killed, is one row, no other row is there, each chain is whole both ways.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/load.h"
#include "tests/lib/pair.h"
#include "tests/lib/proxy.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <time.h>

#define WAIT_MS        60000
#define LONGEST_MS     2500 /* more than the ledger's deadline */
#define FAULT_DEATH_MS 3000
#define SERVICE        40 /* runs between two faults */
#define DISK_BYTES     ((size_t)256 << 20)
#define JOURNAL_SIZE   "size=24m"
#define URL_BYTES      (2 * POSTGRES_URL_BYTES)
#define MARGIN_S       600
#define PLAIN          0
#define KEYED          1

struct soak {
    uint64_t random; /* never 0 */
    int64_t began_ms, end_ms;
    struct pair pair;
    struct proxy *proxies[PAIR_SERVERS];
    int primary;
    struct daemon *daemon;
    char disk[32]; /* of the journal: where it is mounted, outside of the daemon's folder */
    char filler[48];
    struct load *loads[2];
    json_t *ids;   /* of runs that have to be rows */
    char note[96]; /* on the fault that is going on */
};

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given && given[0] ? strtoull(given, NULL, 10) : otherwise;
}

static int dice(struct soak *soak, int sides)
{
    soak->random ^= soak->random << 13;
    soak->random ^= soak->random >> 7;
    soak->random ^= soak->random << 17;
    return (int)((soak->random >> 11) % (uint64_t)sides);
}

static const char *primary_url(const struct soak *soak)
{
    return pair_url_of(&soak->pair, soak->primary);
}

static struct postgres_server *primary_server(const struct soak *soak)
{
    return soak->pair.servers[soak->primary];
}

static int standby(const struct soak *soak)
{
    return PAIR_SERVERS - 1 - soak->primary;
}

/* How long a fault lasts: a moment, or longer than anybody waits. */
static void last(struct soak *soak)
{
    int ms = 50 + dice(soak, LONGEST_MS);
    size_t length = strlen(soak->note);
    (void)snprintf(soak->note + length, sizeof(soak->note) - length, "%s%d ms", length ? ", " : "",
                   ms);
    (void)poll(NULL, 0, ms);
}

static int sum(const struct soak *soak, bool told)
{
    int count = 0;
    for (int i = 0; i < 2; i++) {
        struct load_counts counts = load_counts(soak->loads[i]);
        count += told ? counts.told : counts.asked;
    }
    return count;
}

/* ---- faults of the daemon --------------------------------------------------------------------- */

static void bury(struct soak *soak)
{
    daemon_expect_nothing(soak->daemon, 5000);
    load_add_journal(soak->ids, soak->daemon);
}

static void kill_daemon(struct soak *soak)
{
    daemon_kill9(soak->daemon);
    bury(soak);
    daemon_start_again(soak->daemon);
}

static void restart_daemon(struct soak *soak)
{
    ck_assert_int_eq(daemon_terminate(soak->daemon), 0);
    load_add_journal(soak->ids, soak->daemon);
    daemon_start_again(soak->daemon);
}

/* The next daemon kills itself at a point; or, if it does not get there, is killed. */
static void kill_daemon_at_point(struct soak *soak)
{
    static const char *const points[] = {
        "intent_written", "intent_durable",  "provider_started",   "report_read",
        "record_kept",    "batch_sent",      "commit_answered",    "settle_written",
        "recovery_asked", "rewrite_written", "reply_half_written", "rewrite_renamed",
    };
    const char *point = points[dice(soak, AR_COUNT(points))];
    int64_t deadline;
    int status = 0;
    (void)snprintf(soak->note, sizeof(soak->note), "%s:%d", point, 1 + dice(soak, 80));
    daemon_kill9(soak->daemon);
    bury(soak);
    daemon_launch_fault(soak->daemon, soak->note);
    deadline = processes_now_ms() + FAULT_DEATH_MS;
    while (!daemon_has_ended(soak->daemon, &status) && processes_now_ms() < deadline)
        (void)poll(NULL, 0, 10);
    if (daemon_pid(soak->daemon))
        daemon_kill9(soak->daemon);
    else
        ck_assert_int_eq(status, 128 + SIGKILL);
    bury(soak);
    daemon_start_again(soak->daemon);
}

static void fill_journal_disk(struct soak *soak)
{
    static const char block[4096];
    size_t size = sizeof(block);
    AR_AUTO_CLOSE int fd = open(soak->filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    while (size > 0)
        if (write(fd, block, size) < 0)
            size /= 2;
    last(soak);
    ck_assert_int_eq(unlink(soak->filler), 0);
}

/* The same, and killed there. */
static void kill_daemon_on_full_disk(struct soak *soak)
{
    fill_journal_disk(soak);
    kill_daemon(soak);
}

/* ---- faults of the way ------------------------------------------------------------------------ */

static void act_at_commit(struct soak *soak)
{
    static const enum proxy_act acts[] = {PROXY_CUT_BEFORE, PROXY_CUT_AFTER, PROXY_HOLD_BEFORE,
                                          PROXY_HOLD_AFTER};
    static const char *const names[] = {"cut before", "cut after", "held before", "held after"};
    struct proxy *proxy = soak->proxies[soak->primary];
    int act = dice(soak, AR_COUNT(acts));
    (void)snprintf(soak->note, sizeof(soak->note), "%s", names[act]);
    proxy_set(proxy, acts[act], 1 + (unsigned)dice(soak, 3));
    last(soak);
    proxy_set(proxy, PROXY_PASS, 0);
    proxy_release(proxy);
}

static void cut_all(struct soak *soak)
{
    proxy_cut(soak->proxies[soak->primary]);
}

/* ---- faults of the server --------------------------------------------------------------------- */

static void signal_backends(struct soak *soak)
{
    static const int numbers[] = {SIGKILL, SIGTERM, SIGINT, SIGSTOP};
    static const char *const names[] = {"killed", "terminated", "cancelled", "stopped"};
    int which = dice(soak, AR_COUNT(numbers));
    (void)snprintf(soak->note, sizeof(soak->note), "%s", names[which]);
    const char *list = "SELECT coalesce(string_agg(pid::text, ' '), '') FROM pg_stat_activity "
                       "WHERE application_name = 'auditrund'";
    AR_AUTO_FREE char *pids = postgres_sql(primary_url(soak), list);
    ck_assert_ptr_nonnull(pids);
    AR_AUTO_FREE char *again = strdup(pids);
    char *rest = pids, *pid;
    while (rest && *rest && (pid = strsep(&rest, " ")))
        (void)kill((pid_t)strtol(pid, NULL, 10), numbers[which]);
    if (numbers[which] != SIGSTOP)
        return;
    last(soak);
    rest = again;
    while (rest && *rest && (pid = strsep(&rest, " ")))
        (void)kill((pid_t)strtol(pid, NULL, 10), SIGCONT);
}

static bool serves(void *context)
{
    return postgres_run(context, "SELECT 1");
}

static void kill_postmaster(struct soak *soak)
{
    postgres_kill(primary_server(soak));
    last(soak);
    ck_assert(postgres_start_again(primary_server(soak)));
}

/* Only the first server has a small disk. One that gave up is started again. */
static void fill_server_disk(struct soak *soak)
{
    struct postgres_server *first = soak->pair.servers[PAIR_FIRST];
    if (soak->primary != PAIR_FIRST) {
        (void)snprintf(soak->note, sizeof(soak->note), "not here: the other one is the primary");
        return;
    }
    ck_assert(postgres_fill_disk(first));
    last(soak);
    postgres_free_disk(first);
    if (!processes_wait(serves, (void *)(uintptr_t)primary_url(soak), 3000)) {
        postgres_stop_immediate(first);
        ck_assert(postgres_start_again(first));
    }
}

static void fail_over(struct soak *soak)
{
    ck_assert(pair_fail_over(&soak->pair, standby(soak)));
    soak->primary = standby(soak);
    last(soak);
    ck_assert(pair_rejoin(&soak->pair, standby(soak)));
}

/* Commits wait for the standby in vain, and are interrupted; then it is back, or takes over. */
static void lose_standby(struct soak *soak)
{
    static const char *const ways[] = {
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = "
        "'SyncRep'",
        "SELECT 1"};
    int way = dice(soak, AR_COUNT(ways));
    bool takes_over = dice(soak, 2) == 1;
    (void)snprintf(soak->note, sizeof(soak->note), "%s",
                   way == 0   ? "cancelled"
                   : way == 1 ? "terminated"
                              : "nobody interrupts");
    pair_stop_standby(&soak->pair, standby(soak));
    last(soak);
    ck_assert(postgres_run(primary_url(soak), ways[way]));
    if (takes_over)
        fail_over(soak);
    else
        ck_assert(pair_start_standby(&soak->pair, standby(soak)));
}

/* ---- the schedule ----------------------------------------------------------------------------- */

struct soak_fault {
    const char *name;
    void (*strike)(struct soak *soak);
    int weight;
};

static const struct soak_fault faults[] = {
    {"daemon killed", kill_daemon, 3},
    {"daemon killed at a point", kill_daemon_at_point, 6},
    {"daemon restarted", restart_daemon, 2},
    {"journal's disk full", fill_journal_disk, 2},
    {"journal's disk full, then daemon killed", kill_daemon_on_full_disk, 1},
    {"COMMIT", act_at_commit, 6},
    {"connections cut", cut_all, 1},
    {"backends", signal_backends, 4},
    {"postmaster killed", kill_postmaster, 2},
    {"server's disk full", fill_server_disk, 2},
    {"standby takes over", fail_over, 1},
    {"standby lost", lose_standby, 1},
};

static const struct soak_fault *next_fault(struct soak *soak)
{
    int weights = 0;
    for (size_t i = 0; i < AR_COUNT(faults); i++)
        weights += faults[i].weight;
    int at = dice(soak, weights);
    const struct soak_fault *fault = faults;
    while (at >= fault->weight)
        at -= (fault++)->weight;
    return fault;
}

static void play(struct soak *soak)
{
    while (processes_now_ms() < soak->end_ms) {
        const struct soak_fault *fault = next_fault(soak);
        soak->note[0] = '\0';
        (void)poll(NULL, 0, dice(soak, 300));
        int64_t from = processes_now_ms() - soak->began_ms;
        (void)printf("%6" PRId64 ".%03" PRId64 " s  %s", from / 1000, from % 1000, fault->name);
        (void)fflush(stdout);
        fault->strike(soak);
        load_await_told(soak->loads[PLAIN], SERVICE, WAIT_MS);
        load_await_told(soak->loads[KEYED], SERVICE / 4, WAIT_MS);
        (void)printf("%s%s%s; serves again after %" PRId64 " ms, %d asked, %d recorded\n",
                     soak->note[0] ? " (" : "", soak->note, soak->note[0] ? ")" : "",
                     processes_now_ms() - soak->began_ms - from, sum(soak, false), sum(soak, true));
        (void)fflush(stdout);
    }
}

/* ---- beginning -------------------------------------------------------------------------------- */

static struct proxy *start_proxy(const struct postgres_server *server)
{
    char path[POSTGRES_PATH_BYTES];
    postgres_socket(server, path);
    struct proxy *proxy = proxy_start(path, false);
    ck_assert_ptr_nonnull(proxy);
    return proxy;
}

/* "host=X port=Y" of each proxy as one list. */
static void proxies_url(const struct soak *soak, char url[URL_BYTES])
{
    char hosts[PAIR_SERVERS][PROXY_HOST_BYTES];
    for (int i = 0; i < PAIR_SERVERS; i++) {
        proxy_host(soak->proxies[i], hosts[i]);
        hosts[i][strcspn(hosts[i], " ")] = '\0';
    }
    (void)snprintf(url, URL_BYTES, "postgres:%s,%s port=%d,%d user=tester dbname=postgres",
                   hosts[0], hosts[1] + strlen("host="), proxy_port(soak->proxies[0]),
                   proxy_port(soak->proxies[1]));
}

/* The journal's own disk, in the mounts of this process alone (they went apart with the server's). In the
 * daemon's folder is a link to it. */
static void make_journal_disk(struct soak *soak)
{
    (void)snprintf(soak->disk, sizeof(soak->disk), "/tmp/auditrun-soak-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(soak->disk));
    (void)snprintf(soak->filler, sizeof(soak->filler), "%s/filler", soak->disk);
    ck_assert_int_eq(mount("tmpfs", soak->disk, "tmpfs", 0, JOURNAL_SIZE), 0);
    ck_assert_int_eq(rmdir(daemon_journal(soak->daemon)), 0);
    ck_assert_int_eq(symlink(soak->disk, daemon_journal(soak->daemon)), 0);
}

static void make_daemon(struct soak *soak, const char *url)
{
    static const char *const well[] = {"well", NULL};
    AR_AUTO_FREE char *config =
        fake_config(well, 16,
                    dice(soak, 2) ? "[ledger]\ndeadline = 1s\n"
                                  : "[ledger]\ndeadline = 1s\nwhen_down = keep\n");
    struct daemon_options options = {.config = config, .ledger_url = url};
    soak->daemon = daemon_prepare(&options);
    make_journal_disk(soak);
    daemon_start_again(soak->daemon);
}

static void begin(struct soak *soak, uint64_t seed)
{
    static const struct load_options options[2] = {[PLAIN] = {.name = "plain",
                                                              .clients = 48,
                                                              .in_flight = 1,
                                                              .sleep_ms = 5,
                                                              .at_risk_is_ok = true},
                                                   [KEYED] = {.name = "keyed",
                                                              .clients = 16,
                                                              .in_flight = 1,
                                                              .sleep_ms = 5,
                                                              .at_risk_is_ok = true,
                                                              .keys = true}};
    char url[URL_BYTES];
    *soak = (struct soak){.random = seed * 2654435761u + 1, .ids = json_object()};
    ck_assert(pair_begin_with(&soak->pair, DISK_BYTES));
    for (int i = 0; i < PAIR_SERVERS; i++)
        soak->proxies[i] = start_proxy(soak->pair.servers[i]);
    proxies_url(soak, url);
    make_daemon(soak, url);
    soak->began_ms = processes_now_ms();
    soak->end_ms = soak->began_ms + 1000 * (int64_t)number_from("SOAK_SECONDS", 120);
    for (int i = 0; i < 2; i++) {
        soak->loads[i] = load_begin(soak->daemon, &options[i]);
        load_go(soak->loads[i]);
    }
}

/* ---- the balance ------------------------------------------------------------------------------ */

static void tell(const struct soak *soak, const char *name, const char *sql)
{
    AR_AUTO_FREE char *value = postgres_sql(primary_url(soak), sql);
    ck_assert_ptr_nonnull(value);
    (void)printf("  %-12s %s\n", name, value);
}

static void tell_balance(const struct soak *soak, size_t rows)
{
    for (int i = 0; i < 2; i++) {
        struct load_counts counts = load_counts(soak->loads[i]);
        (void)printf(
            "  %-12s %d asked: %d told, %d kept, %d at risk, %d not answered; %d of them refused\n",
            i == PLAIN ? "plain" : "with keys", counts.asked, counts.told, counts.kept,
            counts.at_risk, counts.asked - counts.told - counts.kept - counts.at_risk,
            counts.refused);
    }
    (void)printf("  %-12s %zu\n", "rows", rows);
    tell(soak, "by status",
         "SELECT string_agg(concat_ws(' ', n, status), ', ') FROM "
         "(SELECT status, count(*) AS n FROM auditrun.runs GROUP BY 1 ORDER BY 1) AS s");
    tell(soak, "late", "SELECT count(*) FROM auditrun.runs WHERE late");
    tell(soak, "events",
         "SELECT string_agg(concat_ws(' ', n, kind), ', ') FROM "
         "(SELECT kind, count(*) AS n FROM auditrun.events GROUP BY 1 ORDER BY 1) AS s");
    tell(soak, "writers", "SELECT count(*) FROM auditrun.writers");
    tell(soak, "verify",
         "SELECT concat_ws(' ', finding, writer, seq) || ' (' || rows || ' rows, in "
         "SQL as in C)' FROM auditrun.verify()");
}

static void settle(struct soak *soak)
{
    const struct load *const *loads = (const struct load *const *)soak->loads;
    for (int i = 0; i < 2; i++)
        load_rest(soak->loads[i], WAIT_MS);
    (void)load_expect_rows(loads, 2, primary_url(soak), soak->ids, WAIT_MS);
    load_add_rows(soak->ids, primary_url(soak));
    load_ask_again(soak->loads[KEYED], soak->daemon, soak->ids);
    ck_assert_int_eq(daemon_terminate(soak->daemon), 0);
    load_expect_nothing_open(soak->daemon);
    size_t rows = load_expect_rows(loads, 2, primary_url(soak), soak->ids, 0);
    ck_assert_uint_eq(rows, json_object_size(soak->ids));
    AR_AUTO_FREE char *gaps =
        postgres_sql(primary_url(soak), "SELECT count(*) FROM auditrun.events WHERE kind = 'gap'");
    tell_balance(soak, rows);
    ck_assert_str_eq(gaps, "0"); /* nobody has touched the ledger */
}

static void end(struct soak *soak)
{
    daemon_free(soak->daemon);
    ck_assert_int_eq(umount(soak->disk), 0);
    ck_assert_int_eq(rmdir(soak->disk), 0);
    for (int i = 0; i < 2; i++) {
        load_free(soak->loads[i]);
        proxy_free(soak->proxies[i]);
    }
    pair_end(&soak->pair);
    json_decref(soak->ids);
}

START_TEST(soak)
{
    struct soak state;
    begin(&state, number_from("SOAK_SEED", 1));
    play(&state);
    settle(&state);
    end(&state);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("soak");
    TCase *tcase = tcase_create("soak");
    char seed[32];
    if (!postgres_has_disks()) {
        (void)fputs("SKIPPED: the soak test needs the right to mount\n", stderr);
        return 77;
    }
    (void)snprintf(seed, sizeof(seed), "%" PRIu64, number_from("SOAK_SEED", (uint64_t)time(NULL)));
    (void)setenv("SOAK_SEED", seed, 1);
    (void)printf("SOAK_SEED=%s\n", seed);
    (void)fflush(stdout);
    tcase_set_timeout(tcase, (double)(number_from("SOAK_SECONDS", 120) + MARGIN_S));
    tcase_add_test(tcase, soak);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (failed > 0)
        (void)printf("failed with SOAK_SEED=%s\n", seed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

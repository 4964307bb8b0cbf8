/*
 * check_watchdog.c - the daemon under a service manager that watches it (C34).
 *
 * The test is the manager: a thread of it reads the notify socket and notes the longest silence between
 * two signs of life. A database, a disk or a load that is slow is no reason for one to be late; a loop
 * that stands still is.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>

#define INTERVAL_MS 500
#define SLOW_MS     2000
#define MANY        1000

struct manager {
    int fd;
    pthread_t thread;
    char variable[160];
    const char *environment[3];
    atomic_bool ends, ready, stopping;
    atomic_long signs, longest_ms; /* since manager_begin() */
    atomic_long last_ms;
};

static void note_sign(struct manager *manager)
{
    long now = (long)processes_now_ms(), last = atomic_exchange(&manager->last_ms, now);
    if (last > 0 && now - last > atomic_load(&manager->longest_ms))
        atomic_store(&manager->longest_ms, now - last);
    atomic_fetch_add(&manager->signs, 1);
}

static void *listen_to(void *context)
{
    struct manager *manager = context;
    char text[512];
    while (!atomic_load(&manager->ends)) {
        struct pollfd wait = {.fd = manager->fd, .events = POLLIN};
        if (poll(&wait, 1, 20) != 1)
            continue;
        ssize_t n = recv(manager->fd, text, sizeof(text) - 1, 0);
        text[n > 0 ? n : 0] = '\0';
        if (strcmp(text, "WATCHDOG=1") == 0)
            note_sign(manager);
        else if (strstr(text, "READY=1") && strstr(text, "\nSTATUS=serving"))
            atomic_store(&manager->ready, true);
        else if (strstr(text, "STOPPING=1") && strstr(text, "\nSTATUS="))
            atomic_store(&manager->stopping, true);
    }
    return NULL;
}

/* Makes the socket in the daemon's folder; the daemon is not started yet. */
static struct daemon *prepare(struct manager *manager, const char *config)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *manager = (struct manager){.environment = {manager->variable, "WATCHDOG_USEC=500000", NULL}};
    struct daemon *daemon = daemon_prepare(
        &(struct daemon_options){.environment = manager->environment, .config = config});
    AR_AUTO_FREE char *path = daemon_path(daemon, "notify");
    (void)snprintf(manager->variable, sizeof(manager->variable), "NOTIFY_SOCKET=%s", path);
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(manager->fd, 0);
    ck_assert_uint_lt(strlen(path), sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(bind(manager->fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(pthread_create(&manager->thread, NULL, listen_to, manager), 0);
    return daemon;
}

static bool is_ready(void *context)
{
    const struct manager *manager = context;
    return atomic_load(&manager->ready);
}

static bool has_signs(void *context)
{
    const struct manager *manager = context;
    return atomic_load(&manager->signs) >= 3;
}

/* From here on silences count. */
static void begin(struct manager *manager)
{
    ck_assert(processes_wait(is_ready, manager, DAEMON_START_MS));
    atomic_store(&manager->longest_ms, 0);
    atomic_store(&manager->signs, 0);
}

/* The daemon was never silent for the interval. */
static void expect_life(struct manager *manager)
{
    ck_assert_msg(processes_wait(has_signs, manager, DAEMON_START_MS), "no sign of life");
    ck_assert_int_lt(atomic_load(&manager->longest_ms), INTERVAL_MS);
}

static void end(struct manager *manager, struct daemon *daemon)
{
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    atomic_store(&manager->ends, true);
    ck_assert_int_eq(pthread_join(manager->thread, NULL), 0);
    ck_assert(atomic_load(&manager->stopping));
    (void)close(manager->fd);
    daemon_free(daemon);
}

static bool is_over(void *context)
{
    const int64_t *until = context;
    return processes_now_ms() >= *until;
}

/* Lets a condition last. */
static void last(int64_t ms)
{
    int64_t until = processes_now_ms() + ms;
    ck_assert(processes_wait(is_over, &until, ms * 2));
}

/* ---- tests ------------------------------------------------------------------------------------ */

START_TEST(a_slow_database_is_no_silence)
{
    struct manager manager;
    sqlite3 *db = NULL;
    AR_AUTO_FREE char *config = e2e_fake(NULL);
    struct daemon *daemon = prepare(&manager, config);
    daemon_start_again(daemon);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *ledger = daemon_path(daemon, "ledger.db");
    ck_assert_int_eq(sqlite3_open(ledger, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_busy_timeout(db, CLIENT_WAIT_MS), SQLITE_OK);
    begin(&manager);
    ck_assert_int_eq(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    client_request(client, 1, "run", client_params("fake", "exit 0", NULL));
    last(SLOW_MS);
    ck_assert_int_eq(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
    AR_AUTO_JSON json_t *result = client_result(client, 1);
    client_expect(result, "succeeded", "exit_zero");
    expect_life(&manager);
    client_disconnect(client);
    end(&manager, daemon);
}
END_TEST

START_TEST(a_stalled_journal_is_no_silence)
{
    struct manager manager;
    AR_AUTO_FREE char *config = e2e_fake(NULL);
    struct daemon *daemon = prepare(&manager, config);
    daemon_launch_fault(daemon, "intent_written:stall");
    daemon_await(daemon);
    struct client *client = daemon_connect(daemon);
    begin(&manager);
    int64_t began = processes_now_ms();
    AR_AUTO_JSON json_t *result = client_call(client, "run", client_params("fake", "exit 0", NULL));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_int_gt(processes_now_ms() - began, SLOW_MS); /* it has stalled */
    expect_life(&manager);
    client_disconnect(client);
    end(&manager, daemon);
}
END_TEST

START_TEST(many_ends_at_once_are_no_silence)
{
    struct manager manager;
    AR_AUTO_FREE char *config =
        e2e_fake("[limits]\nmax_running = 1\nmax_queued = 2000\nmax_queued_company = 2000\n"
                 "queue_deadline = 100s\n[socket]\nmax_pending = 2000\n");
    struct daemon *daemon = prepare(&manager, config);
    daemon_start_again(daemon);
    struct client *client = daemon_connect(daemon), *other = daemon_connect(daemon);
    begin(&manager);
    for (json_int_t id = 1; id <= MANY; id++)
        client_request(client, id, "run", client_params("fake", "sleep 60000", NULL));
    while (e2e_status(other, "runs", "queued") < MANY - 1)
        (void)poll(NULL, 0, 5);
    client_disconnect(client); /* all of them are cancelled: client_gone */
    struct rows rows = rows_wait(daemon_ledger(daemon), MANY, 60000);
    rows_free(&rows);
    expect_life(&manager);
    client_disconnect(other);
    end(&manager, daemon);
}
END_TEST

START_TEST(a_loop_that_stands_still_is_silent)
{
    struct manager manager;
    AR_AUTO_FREE char *config = e2e_fake(NULL);
    struct daemon *daemon = prepare(&manager, config);
    daemon_start_again(daemon);
    begin(&manager);
    ck_assert(processes_wait(has_signs, &manager, DAEMON_START_MS));
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGSTOP), 0);
    last(INTERVAL_MS); /* what was sent before */
    long signs = atomic_load(&manager.signs);
    last((int64_t)2 * INTERVAL_MS);
    ck_assert_int_eq(atomic_load(&manager.signs), signs);
    ck_assert_int_eq(kill(daemon_pid(daemon), SIGCONT), 0);
    atomic_store(&manager.signs, 0);
    ck_assert(processes_wait(has_signs, &manager, DAEMON_START_MS));
    end(&manager, daemon);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("watchdog");
    TCase *tcase = e2e_case(suite, "signs of life");
    tcase_add_test(tcase, a_slow_database_is_no_silence);
    tcase_add_test(tcase, a_stalled_journal_is_no_silence);
    tcase_add_test(tcase, many_ends_at_once_are_no_silence);
    tcase_add_test(tcase, a_loop_that_stands_still_is_silent);
    return e2e_run(suite);
}

/*
 * check_load.c - many runs: each answered once and recorded once, and the daemon is as small after
 * them as before.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/postgres.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define RUNS        1000
#define IN_FLIGHT   64
#define WARM        300 /* after so many the memory is measured first */
#define MAY_GROW_KB 512 /* from then to the end; one leaked run is more than 1 KiB */
#define ANSWER_MS   60000

/* ---- companies ---------------------------------------------------------------------------------- */

static json_t *of_company(const char *company)
{
    json_t *params = fake_params("well", "sleep 20", NULL);
    ck_assert_int_eq(json_object_set_new(params, "company", json_string(company)), 0);
    return params;
}

#ifdef __SANITIZE_ADDRESS__
#    define FLOOD 2000
#else
#    define FLOOD 10000
#endif

/* Runs of the flood that began while the other one waited. */
static size_t count_begun_meanwhile(const struct rows *rows)
{
    const struct record *other = NULL;
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->items[i]->company, "globex") == 0)
            other = rows->items[i];
    ck_assert_ptr_nonnull(other);
    for (size_t i = 0; i < rows->count; i++)
        count += rows->items[i] != other && rows->items[i]->started_at > other->received_at &&
                 rows->items[i]->started_at <= other->started_at;
    return count;
}

static bool all_have_come(void *context)
{
    return e2e_status(context, "runs", "total") == FLOOD;
}

static void send_flood(int fd)
{
    for (int id = 1; id <= FLOOD; id++)
        if (dprintf(
                fd,
                "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"run\",\"params\":{\"company\":"
                "\"acme\","
                "\"actor\":\"a\",\"purpose\":\"flood\",\"language\":\"fake\",\"code\":\"sleep 10\","
                "\"grant\":{}}}\n",
                id) < 0)
            _exit(1);
}

static void read_answers(int fd)
{
    char *line = NULL;
    size_t room = 0;
    FILE *answers = fdopen(fd, "r");
    for (int i = 0; answers && i < FLOOD; i++)
        if (getline(&line, &room, answers) <= 0 || !strstr(line, "\"result\":"))
            _exit(2);
    _exit(answers ? 0 : 3);
}

/* The flood, in a process that sends and one that reads: the library's client keeps every line for the
 * schemas, which takes longer than the daemon does. */
static pid_t start_flood(const struct daemon *daemon)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = daemon_socket(daemon);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        _exit(4);
    pid_t reader = fork();
    if (reader == 0)
        read_answers(fd);
    send_flood(fd);
    int status = -1;
    (void)waitpid(reader, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
}

/* One company floods; the run of another waits for those that have places, and not for the flood. */
START_TEST(a_flood_holds_up_its_own_company)
{
    enum { SLOTS = 2, QUEUED = 512 /* max_queued_company */ };
    static const char *const modes[] = {"well", NULL};
    struct daemon *daemon = fake_daemon(modes, SLOTS, "[socket]\nmax_pending = 20000\n");
    struct client *client = daemon_connect(daemon);
    int status;
    pid_t flood = start_flood(daemon);
    ck_assert(processes_wait(all_have_come, client, ANSWER_MS));
    AR_AUTO_JSON json_t *other = client_call(client, "run", of_company("globex"));
    client_expect(other, "succeeded", "exit_zero");
    ck_assert(waitpid(flood, &status, 0) == flood && status == 0);
    struct rows rows = rows_read(daemon_ledger(daemon));
    ck_assert_uint_eq(rows.count, FLOOD + 1);
    ck_assert_uint_le(count_begun_meanwhile(&rows), SLOTS);
    ck_assert_uint_gt(rows_count(&rows, STATUS_SUCCEEDED, REASON_NONE), QUEUED);
    ck_assert_uint_eq(rows_count(&rows, STATUS_SUCCEEDED, REASON_NONE) +
                          rows_count(&rows, STATUS_REFUSED, REASON_OVERLOADED),
                      rows.count);
    rows_free(&rows);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* What is over the bounds of a company is refused, and takes nobody else's place. */
START_TEST(a_company_has_bounds_of_its_own)
{
    enum { SENT = 40 };
    static const char *const modes[] = {"well", NULL};
    struct daemon *daemon =
        fake_daemon(modes, 4, "[limits]\nmax_running_company = 2\nmax_queued_company = 8\n");
    struct client *client = daemon_connect(daemon);
    size_t refused = 0;
    for (json_int_t id = 1; id <= SENT; id++)
        client_request(client, id, "run", fake_params("well", "sleep 300", NULL));
    client_request(client, SENT + 1, "run", of_company("globex"));
    AR_AUTO_JSON json_t *other = client_result(client, SENT + 1);
    client_expect(other, "succeeded", "exit_zero");
    for (json_int_t id = 1; id <= SENT; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        bool is_refused =
            strcmp(json_string_value(json_object_get(result, "status")), "refused") == 0;
        client_expect(result, is_refused ? "refused" : "succeeded",
                      is_refused ? "overloaded" : "exit_zero");
        refused += is_refused;
    }
    ck_assert_uint_ge(refused, SENT - 2 - 8 - 10); /* some places come free while they are sent */
    ck_assert_uint_le(refused, SENT - 2 - 8);
    rows_expect(daemon_ledger(daemon), SENT + 1);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- what the daemon holds ---------------------------------------------------------------------- */

static long resident_kb(const struct daemon *daemon)
{
    char path[64];
    long kb = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)daemon_pid(daemon));
    AR_AUTO_FREE char *line = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (getline(&line, &room, file) > 0 && sscanf(line, "VmRSS: %ld kB", &kb) != 1)
        ;
    (void)fclose(file);
    ck_assert_int_gt(kb, 0);
    return kb;
}

static size_t open_descriptors(const struct daemon *daemon)
{
    char path[64];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)daemon_pid(daemon));
    DIR *directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

struct watch {
    const struct daemon *daemon;
    struct client *client;
    size_t descriptors, processes;
};

/* As before, once what was started ahead of demand stands ready: nothing runs, nobody is replaced. */
static bool is_as_before(void *context)
{
    const struct watch *watch = context;
    struct processes below = daemon_processes(watch->daemon);
    size_t processes = below.count;
    processes_free(&below);
    return open_descriptors(watch->daemon) <= watch->descriptors && processes <= watch->processes;
}

/* All slots have been filled: what the daemon holds at rest from then on. */
static void fill_slots(struct client *client, json_int_t slots, json_t *(*params)(void))
{
    for (json_int_t id = 1; id <= slots; id++)
        client_request(client, id, "run", params());
    for (json_int_t id = 1; id <= slots; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "succeeded", "exit_zero");
    }
}

/* ---- many runs ---------------------------------------------------------------------------------- */

struct answers {
    bool seen[RUNS + 1];
    size_t count;
};

static void take_answer(struct client *client, struct answers *answers, json_int_t base)
{
    AR_AUTO_JSON json_t *message = client_next_within(client, ANSWER_MS);
    ck_assert_ptr_nonnull(message);
    json_int_t id = json_integer_value(json_object_get(message, "id")) - base;
    ck_assert_msg(id >= 1 && id <= RUNS && !answers->seen[id], "%s", client_last_line(client));
    client_expect(json_object_get(message, "result"), "succeeded", "exit_zero");
    answers->seen[id] = true;
    answers->count++;
}

/* Every run has one row, and a place of its own in the chain. */
static void expect_each_once(const struct daemon *daemon, size_t count)
{
    enum { EVENTS = 8 }; /* at most: the daemon's own rows are in the chain too */
    bool taken[RUNS + 64 + EVENTS] = {false};
    struct rows rows = rows_read(daemon_ledger(daemon));
    ck_assert_uint_eq(rows.count, count);
    ck_assert_uint_eq(rows_count(&rows, STATUS_SUCCEEDED, REASON_EXIT_ZERO), count);
    for (size_t i = 0; i < rows.count; i++) {
        int64_t seq = rows.items[i]->seq;
        ck_assert(seq >= 1 && seq <= (int64_t)count + EVENTS && !taken[seq]);
        taken[seq] = true;
        (void)rows_find(&rows, rows.items[i]->run_id);
    }
    rows_free(&rows);
}

static json_t *fake_one(void)
{
    return fake_params("well", "print some output of a run", NULL);
}

/* RUNS runs over one connection, IN_FLIGHT at a time. In PostgreSQL: SQLite would keep pages of the
 * ledger in the daemon's memory (at most 8 MiB, which would hide what the daemon itself keeps). */
START_TEST(a_thousand_runs_leave_nothing)
{
    static const char *const modes[] = {"well", NULL};
    enum { SLOTS = 8, BASE = 1000 };
    struct postgres_server *server = postgres_start();
    ck_assert_ptr_nonnull(server);
    AR_AUTO_FREE char *config = fake_config(modes, SLOTS, NULL);
    struct daemon_options options = {.config = config, .ledger_url = postgres_url(server)};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    struct answers answers = {0};
    long warm_kb = 0;
    fill_slots(client, SLOTS, fake_one);
    struct watch watch = {daemon, client, open_descriptors(daemon), SLOTS};

    json_int_t sent = 0;
    while (answers.count < RUNS) {
        while (sent < RUNS && (size_t)sent < answers.count + IN_FLIGHT)
            client_request(client, BASE + ++sent, "run", fake_one());
        take_answer(client, &answers, BASE);
        if (answers.count == WARM)
            warm_kb = resident_kb(daemon);
    }
    long end_kb = resident_kb(daemon);
    (void)fprintf(stderr, "resident: %ld KiB after %d runs, %ld KiB after %d\n", warm_kb, WARM,
                  end_kb, RUNS);
    ck_assert_int_le(end_kb, warm_kb + MAY_GROW_KB + E2E_SANITIZER_KB);
    ck_assert_msg(processes_wait(is_as_before, &watch, 5000), "%zu descriptors before, %zu after",
                  watch.descriptors, open_descriptors(daemon));
    expect_each_once(daemon, SLOTS + RUNS);
    client_disconnect(client);
    daemon_free(daemon);
    postgres_free(server);
}
END_TEST

static json_t *sandboxed_one(void)
{
    return client_params("bash", "echo some output of a run", NULL);
}

/* The same with real sandboxes, as many as a test has time for. */
START_TEST(sandboxes_leave_nothing)
{
    enum { SLOTS = 4, BASE = 1000, COUNT = 150 };
    struct daemon_options options = {.config = "[executor namespace]\nslots = 4\n"};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    struct answers answers = {0};
    fill_slots(client, SLOTS, sandboxed_one);
    /* Of each slot the launcher, and the first process of the next sandbox. */
    struct watch watch = {daemon, client, open_descriptors(daemon), 2 * SLOTS};
    for (json_int_t id = 1; id <= COUNT; id++)
        client_request(client, BASE + id, "run", sandboxed_one());
    while (answers.count < COUNT)
        take_answer(client, &answers, BASE);
    ck_assert_msg(processes_wait(is_as_before, &watch, 5000), "%zu descriptors before, %zu after",
                  watch.descriptors, open_descriptors(daemon));
    expect_each_once(daemon, SLOTS + COUNT);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* Runs that end badly are the ones that leak: killed, crashed, cut off, denied. */
START_TEST(bad_ends_leave_nothing)
{
    static const char *const modes[] = {"well",        "crash-before", "rubbish",
                                        "descriptors", "twice",        NULL};
    enum { ROUNDS = 40 };
    struct daemon *daemon = fake_daemon(modes, 1, NULL);
    struct client *client = daemon_connect(daemon);
    size_t rows = 0, descriptors = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; modes[i]; i++, rows++) {
            AR_AUTO_JSON json_t *result =
                fake_run(client, modes[i], i == 0 ? "spam 3000000" : "outlive\nfault", NULL);
            ck_assert_ptr_nonnull(json_object_get(result, "status"));
        }
        if (round == 1)
            descriptors = open_descriptors(daemon);
    }
    struct watch watch = {daemon, client, descriptors + 2 * AR_COUNT(modes), AR_COUNT(modes) - 1};
    ck_assert_msg(processes_wait(is_as_before, &watch, 10000), "%zu descriptors before, %zu after",
                  descriptors, open_descriptors(daemon));
    rows_expect(daemon_ledger(daemon), rows);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- a fresh program is not busy --------------------------------------------------------------- */

#define FRESH_RUNS    60
#define FRESH_SHIPPED "{'files': [{'path': 'tool', 'text': '#!/bin/sh\\nexit 7\\n'}]}"

/* id 1..: compiled ones, at most eight at a time; beside them short shells that start a program that
 * was shipped, or just copied. */
START_TEST(a_fresh_program_can_be_started)
{
    struct daemon_options options = {.config = "[executor namespace]\nslots = 8\n"};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    const char *c = "int main(void) { return 0; }";
    const char *grant = "{'grant': {'limits': {'wall_ms': 60000}}}";
    json_int_t sent = 0;
    for (json_int_t id = 1; id <= FRESH_RUNS; id++) {
        while (sent < FRESH_RUNS && sent < id + 7) {
            client_request(client, ++sent, "run", client_params("c", c, grant));
            client_request(client, 1000 + sent, "run",
                           client_params("bash",
                                         "./tool; test $? = 7 || exit 1; cp /bin/true t; ./t",
                                         FRESH_SHIPPED));
        }
        AR_AUTO_JSON json_t *compiled = client_answer_within(client, id, 60000);
        AR_AUTO_JSON json_t *shell = client_answer_within(client, 1000 + id, 60000);
        client_expect(json_object_get(compiled, "result"), "succeeded", "exit_zero");
        client_expect(json_object_get(shell, "result"), "succeeded", "exit_zero");
    }
    rows_expect(daemon_ledger(daemon), 2 * FRESH_RUNS);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("load");
    TCase *tcase = e2e_case(suite, "load");
    tcase_set_timeout(tcase, 180);
    tcase_add_test(tcase, a_flood_holds_up_its_own_company);
    tcase_add_test(tcase, a_company_has_bounds_of_its_own);
    tcase_add_test(tcase, a_thousand_runs_leave_nothing);
    tcase_add_test(tcase, sandboxes_leave_nothing);
    tcase_add_test(tcase, bad_ends_leave_nothing);
    tcase_add_test(tcase, a_fresh_program_can_be_started);
    return e2e_run(suite);
}

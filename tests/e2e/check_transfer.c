/*
 * check_transfer.c - a ledger of SQLite goes to PostgreSQL by the command line, in batches, and loses a
 * partition there; every hash holds all the way.
 *
 * The rows are those of the tests of the sinks, odd ones among them, of a day that is long over.
 */
#include "tests/lib/ledger.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define TIMEOUT_S 120
#define ROWS      1200 /* more than a batch */
#define BEFORE    "2026-03-01"

static struct postgres_server *server;

/* ---- the command line --------------------------------------------------------------------------- */

/* A file in the folder of the ledger, which is removed with it. */
static const char *path_of(const struct ledger *ledger, const char *name)
{
    static char paths[8][128];
    static size_t next;
    char *path = paths[next++ % AR_COUNT(paths)];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", ledger->folder, name);
    return path;
}

static char *read_file(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = strdup("");
    }
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

/* auditrun with these words (NULL at the end) ends so; what it prints is in the file "out". */
static void expect(const struct ledger *home, int wanted, const char *const *words)
{
    const char *build = getenv("AUDITRUN_BUILD");
    const char *out = path_of(home, "out");
    AR_AUTO_FREE char *program = NULL;
    char *arguments[16] = {0};
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    int status = 0;
    ck_assert_int_gt(asprintf(&program, "%s/auditrun", build ? build : "build"), 0);
    arguments[0] = program;
    for (size_t i = 0; words[i]; i++)
        arguments[i + 1] = (char *)(uintptr_t)words[i];
    ck_assert_int_eq(posix_spawn_file_actions_init(&actions), 0);
    ck_assert_int_eq(posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out,
                                                      O_WRONLY | O_CREAT | O_TRUNC, 0600),
                     0);
    ck_assert_int_eq(posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO), 0);
    ck_assert_int_eq(posix_spawn(&pid, program, &actions, NULL, arguments, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    AR_AUTO_FREE char *printed = read_file(out);
    ck_assert_msg(WEXITSTATUS(status) == wanted, "%s %s ended with %d, not %d: %.200s", words[0],
                  words[1], WEXITSTATUS(status), wanted, printed);
}
#define EXPECT(home, wanted, ...) expect(home, wanted, (const char *const[]){__VA_ARGS__, NULL})

/* What was printed last has this in it. */
static void expect_said(const struct ledger *home, const char *what)
{
    AR_AUTO_FREE char *text = read_file(path_of(home, "out"));
    ck_assert_msg(strstr(text, what) != NULL, "no \"%s\" in: %s", what, text);
}

static void expect_same_files(const char *one, const char *other)
{
    AR_AUTO_FREE char *left = read_file(one);
    AR_AUTO_FREE char *right = read_file(other);
    ck_assert(strcmp(left, right) == 0);
}

/* ---- ledgers ------------------------------------------------------------------------------------ */

static void append(struct ledger *ledger, const struct sink_batch *batch)
{
    ck_assert_int_eq(ledger_append_batch(ledger, batch).outcome, SINK_STORED);
}

/* Daemons write RFC 8785 text; the odd records of the tests also have other JSON. */
static void make_canonical(struct record *record)
{
    for (size_t i = 0; i < record_layout.count; i++) {
        AR_AUTO_FREE char *text = NULL;
        AR_AUTO_FREE char *canonical = NULL;
        enum row_form form = record_layout.columns[i].form;
        if (form != ROW_OBJECT && form != ROW_ARRAY)
            continue;
        ck_assert_int_eq(row_get(&record_layout, record, i, &text), 0);
        AR_AUTO_JSON json_t *value = json_loads(text, 0, NULL);
        ck_assert_ptr_nonnull(value);
        canonical = json_canonical(value);
        ck_assert_int_eq(row_set(&record_layout, record, i, canonical), 0);
    }
}

static void append_odd(struct ledger *ledger, struct records_chain *chain)
{
    struct sink_head head = ledger_chain_head(chain);
    struct record *records[40];
    for (size_t i = 0; i < AR_COUNT(records); i++) {
        records[i] = records_odd(chain);
        make_canonical(records[i]);
        records_seal(chain, records[i]);
    }
    append(ledger, &(struct sink_batch){.writer = chain->writer,
                                        .head = head,
                                        .records = records,
                                        .record_count = AR_COUNT(records)});
    for (size_t i = 0; i < AR_COUNT(records); i++)
        record_free(records[i]);
}

static void append_event(struct ledger *ledger, struct records_chain *chain)
{
    struct sink_head head = ledger_chain_head(chain);
    AR_CLEANUP(record_cleanup) struct record *for_id = records_plain(chain);
    AR_CLEANUP(chain_event_cleanup)
    struct chain_event *event = chain_event_new(
        for_id->run_id, EVENT_CLOCK_STEPPED, json_pack("{s:i}", "by_ms", -5), for_id->received_at);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(chain_event_seal(event, chain->writer, chain->seq + 1, chain->hash,
                                      for_id->received_at, false),
                     0);
    append(ledger, &(struct sink_batch){
                       .writer = chain->writer, .head = head, .events = &event, .event_count = 1});
    chain->seq = event->seq;
    memcpy(chain->hash, event->row_hash, sizeof(chain->hash));
}

/* SQLite, with two chains of ROWS + 41 rows; its export is in "whole". */
static void begin(struct ledger *ledger, struct records_chain chains[2])
{
    ledger_begin(ledger, LEDGER_SQLITE, NULL);
    for (size_t i = 0; i < 2; i++) {
        records_begin(&chains[i], 500 + i);
        ledger_grow(ledger, &chains[i], ROWS / 2);
        append_event(ledger, &chains[i]);
        ledger_grow(ledger, &chains[i], ROWS / 2);
        append_odd(ledger, &chains[i]);
    }
    EXPECT(ledger, 0, "ledger", "export", "--ledger", ledger->url, "--output",
           path_of(ledger, "whole"));
}

static void end(struct ledger *ledger)
{
    static const char *const names[] = {"out", "whole", "again", "part", "key", "key.pub"};
    for (size_t i = 0; i < AR_COUNT(names); i++)
        (void)unlink(path_of(ledger, names[i]));
    ledger_end(ledger);
}

/* A ledger in PostgreSQL, with all of it. */
static void begin_grown(struct ledger *home, struct records_chain chains[2], struct ledger *grown)
{
    begin(home, chains);
    ledger_begin(grown, LEDGER_POSTGRES, server);
    EXPECT(home, 0, "ledger", "import", "--ledger", grown->url, path_of(home, "whole"));
}

static void expect_value(const struct ledger *ledger, const char *sql, const char *wanted)
{
    AR_AUTO_FREE char *value = ledger_value(ledger, sql);
    ck_assert_ptr_nonnull(value);
    ck_assert_str_eq(value, wanted);
}

/* ---- tests -------------------------------------------------------------------------------------- */

START_TEST(test_a_ledger_grows_out_of_sqlite)
{
    struct ledger home, grown;
    struct records_chain chains[2];
    begin_grown(&home, chains, &grown);
    ledger_expect_sound(&grown, INT64_C(2) * (ROWS + 41), 2);
    expect_value(&grown, "SELECT finding FROM verify()", "ok");
    expect_value(&grown, "SELECT count(*) FROM runs_default", "0");
    EXPECT(&home, 0, "ledger", "export", "--ledger", grown.url, "--output",
           path_of(&home, "again"));
    expect_same_files(path_of(&home, "whole"), path_of(&home, "again"));
    EXPECT(&home, 0, "ledger", "import", "--ledger", grown.url, path_of(&home, "again"));
    expect_said(&home, "0 rows, 0 checkpoints, 0 keys taken in; 2482 rows were there already");
    /* The chain goes on in its new place. */
    ledger_grow(&grown, &chains[0], 3);
    ledger_expect_sound(&grown, INT64_C(2) * (ROWS + 41) + 3, 2);
    EXPECT(&home, 0, "ledger", "import", "--ledger", grown.url, path_of(&home, "whole"));
    ledger_end(&grown);
    end(&home);
}
END_TEST

/* Of the same writer, but another history from its second half on. */
START_TEST(test_another_history_is_refused)
{
    struct ledger home, other;
    struct records_chain chains[2], fork;
    begin(&home, chains);
    ledger_begin(&other, LEDGER_POSTGRES, server);
    records_begin(&fork, 500);
    ledger_grow(&other, &fork, ROWS / 2);
    (void)records_random(&fork);
    ledger_grow(&other, &fork, ROWS / 2);
    EXPECT(&home, 1, "ledger", "import", "--ledger", other.url, path_of(&home, "whole"));
    expect_said(&home, "the ledger has another row");
    ck_assert_int_eq(ledger_verify(&other).finding, VERIFY_OK);
    ledger_end(&other);
    end(&home);
}
END_TEST

START_TEST(test_old_partitions_are_retired)
{
    struct ledger home, grown;
    struct records_chain chains[2];
    begin_grown(&home, chains, &grown);
    ledger_grow(&grown, &chains[1], 2); /* of that day too, so that nothing stays */
    EXPECT(&home, 0, "ledger", "keygen", path_of(&home, "key"));
    EXPECT(&home, 0, "ledger", "retire", "--ledger", grown.url, "--before", "2020-01-01");
    expect_said(&home, "no partition ends by then");
    EXPECT(&home, 0, "ledger", "retire", "--ledger", grown.url, "--before", BEFORE);
    expect_said(&home, "runs_20260126 would go: 2482 rows");
    ledger_expect_sound(&grown, INT64_C(2) * (ROWS + 41) + 2, 2);
    EXPECT(&home, 0, "ledger", "retire", "--ledger", grown.url, "--before", BEFORE, "--key",
           path_of(&home, "key"), "--yes");
    expect_said(&home, "runs_20260126 is retired: 2482 rows");
    ck_assert_int_eq(rename(path_of(&home, "out"), path_of(&home, "part")), 0);
    expect_value(&grown, "SELECT count(*) FROM runs", "0");
    expect_value(&grown, "SELECT finding FROM verify()", "ok");
    EXPECT(&home, 0, "verify", "--ledger", grown.url, "--checkpoints", path_of(&home, "part"),
           "--key", path_of(&home, "key.pub"));
    EXPECT(&home, 0, "ledger", "events", "--ledger", grown.url, "--kind", "partition_retired");
    expect_said(&home, "runs_20260126");
    ledger_end(&grown);
    end(&home);
}
END_TEST

START_TEST(test_what_is_not_as_it_was_written_is_not_retired)
{
    struct ledger home, grown;
    struct records_chain chains[2];
    begin_grown(&home, chains, &grown);
    EXPECT(&home, 0, "ledger", "keygen", path_of(&home, "key"));
    EXPECT(&home, 64, "ledger", "retire", "--ledger", grown.url, "--before", BEFORE, "--yes");
    EXPECT(&home, 64, "ledger", "retire", "--ledger", grown.url);
    EXPECT(&home, 64, "ledger", "retire", "--ledger", home.url, "--before", BEFORE);
    EXPECT(&home, 66, "ledger", "retire", "--ledger", grown.url, "--before", BEFORE, "--yes",
           "--key", path_of(&home, "key.pub"));
    ck_assert(ledger_tamper(&grown, "ALTER TABLE runs_20260126 DISABLE TRIGGER ALL;"
                                    "UPDATE runs SET actor = 'eve' WHERE seq = 7"));
    EXPECT(&home, 2, "ledger", "retire", "--ledger", grown.url, "--before", BEFORE, "--key",
           path_of(&home, "key"), "--yes");
    expect_said(&home, "is not as it was written");
    expect_value(&grown, "SELECT count(*) FROM runs", "2480");
    ledger_end(&grown);
    end(&home);
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("transfer");
    TCase *tcase = tcase_create("transfer");
    tcase_set_timeout(tcase, TIMEOUT_S);
    tcase_add_test(tcase, test_a_ledger_grows_out_of_sqlite);
    tcase_add_test(tcase, test_another_history_is_refused);
    tcase_add_test(tcase, test_old_partitions_are_retired);
    tcase_add_test(tcase, test_what_is_not_as_it_was_written_is_not_retired);
    suite_add_tcase(suite, tcase);
    server = postgres_start();
    if (!server)
        return EXIT_FAILURE;
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    postgres_free(server);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

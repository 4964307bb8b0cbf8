/*
 * check_secrecy.c - nothing of a run's code, input or output, and nothing that a provider says, gets
 * into the ledger, the journal, the log or an error.
 *
 * Canaries are put wherever a request or a provider can put text; then every byte that the daemon
 * leaves anywhere is searched for them: the files of its folder (SQLite ledger and its write-ahead log,
 * journal, log at the level debug), a dump of PostgreSQL, and every answer that is an error.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"
#include "tests/lib/postgres.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

/* All canaries hold this; in base64 at its three alignments, without the ends that vary. */
#define CANARY "CANARYcanary"
static const char *const forms[] = {CANARY, "Q0FOQVJZY2FuYX", "NBTkFSWWNhbmFy", "DQU5BUlljYW5hcn"};

#define GRANT "'grant': {'limits': {'wall_ms': 5000}}"
#define SEEDED                                                                               \
    "'stdin': 'in-" CANARY "', 'args': ['arg-" CANARY "'], 'env': {'V': 'env-" CANARY "'}, " \
    "'files': [{'path': 'f-" CANARY "', 'text': 'file-" CANARY "'}], "                       \
    "'outputs': ['out-" CANARY "'], " GRANT

static bool holds_canary(const char *bytes, size_t length, const char **form)
{
    for (size_t i = 0; i < AR_COUNT(forms); i++) {
        *form = forms[i];
        if (memmem(bytes, length, forms[i], strlen(forms[i])))
            return true;
    }
    return false;
}

static void expect_clean(const char *what, const char *bytes, size_t length)
{
    const char *form;
    ck_assert_msg(!holds_canary(bytes, length, &form), "%s holds %s", what, form);
}

static size_t file_size(const char *path)
{
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    (void)fclose(file);
    return (size_t)size;
}

/* Every regular file of a folder but one; how many there were. */
static size_t search_folder(const char *folder, const char *except)
{
    size_t files = 0;
    struct dirent *entry;
    DIR *directory = opendir(folder);
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory))) {
        AR_AUTO_FREE char *path = NULL;
        ck_assert_int_gt(asprintf(&path, "%s/%s", folder, entry->d_name), 0);
        if (entry->d_type != DT_REG || strcmp(path, except) == 0)
            continue;
        size_t size = file_size(path);
        AR_AUTO_FREE char *bytes = daemon_read_file(path);
        expect_clean(path, bytes, size);
        files++;
    }
    (void)closedir(directory);
    return files;
}

static void search_daemon(const struct daemon *daemon)
{
    ck_assert_uint_ge(search_folder(daemon_folder(daemon), daemon_config(daemon)), 1);
    ck_assert_uint_ge(search_folder(daemon_journal(daemon), ""), 1);
}

/* Every column of every row, as the daemon's own readers see them. */
static void search_rows(const struct daemon *daemon, size_t at_least)
{
    struct rows rows = rows_read(daemon_ledger(daemon));
    ck_assert_uint_ge(rows.count, at_least);
    for (size_t i = 0; i < rows.count; i++) {
        AR_AUTO_JSON json_t *value = record_to_json(rows.items[i]);
        AR_AUTO_FREE char *text = value ? json_dumps(value, 0) : NULL;
        ck_assert_ptr_nonnull(text);
        expect_clean("a row", text, strlen(text));
    }
    rows_free(&rows);
}

static void expect_clean_error(struct client *client, const json_t *message)
{
    if (json_object_get(message, "error"))
        expect_clean("an error", client_last_line(client), strlen(client_last_line(client)));
}

/* ---- what is sent ------------------------------------------------------------------------------- */

/* The search finds what it looks for: otherwise all of this proves nothing. */
START_TEST(the_search_finds_a_canary)
{
    static const char *const seeded[] = {
        "x" CANARY "y", "eENBTkFSWWNhbmFyeXk=", "eHhDQU5BUlljYW5hcnl5", "Q0FOQVJZY2FuYXJ5"};
    const char *form;
    for (size_t i = 0; i < AR_COUNT(seeded); i++)
        ck_assert_msg(holds_canary(seeded[i], strlen(seeded[i]), &form), "%s", seeded[i]);
    ck_assert(!holds_canary("CANARY", 6, &form));
}
END_TEST

/* Runs of the sandbox: they end well, badly, denied, too late, with output that is brought back. */
static void send_code(struct client *client)
{
    static const char *const codes[] = {
        "echo out-" CANARY "; echo err-" CANARY " >&2; cat; echo made >out-" CANARY,
        "echo " CANARY "; exit 3",
        "echo " CANARY "; kill -SEGV $$",
        "echo " CANARY " >&2; sleep 60",
        "if " CANARY " then syntax (",
    };
    for (size_t i = 0; i < AR_COUNT(codes); i++) {
        AR_AUTO_JSON json_t *result = client_call(
            client, "run",
            client_params("bash", codes[i],
                          i == 3 ? "{'grant': {'limits': {'wall_ms': 500}}}" : "{" SEEDED "}"));
        ck_assert_ptr_nonnull(json_object_get(result, "status"));
    }
    AR_AUTO_JSON json_t *denied = client_call(
        client, "run",
        client_params("bash", "echo " CANARY,
                      "{'stdin': '" CANARY "', 'grant': {'network': {'mode': 'open'}}}"));
    client_expect(denied, "capability_denied", "not_enforceable");
    AR_AUTO_JSON json_t *compiled = client_call(
        client, "run",
        client_params("c", "#error " CANARY "\nint " CANARY " = \"" CANARY "\";", NULL));
    client_expect(compiled, "failed", "compile_failed");
}

/* Requests that are wrong, each with the canary at the fault. */
static void send_faults(struct client *client)
{
    static const char *const lines[] = {
        "{" CANARY,
        "{\"" CANARY "\": 1}",
        "\"" CANARY "\"",
        "{\"jsonrpc\": \"" CANARY "\", \"id\": 900, \"method\": \"run\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": 901, \"method\": \"" CANARY "\"}",
        "{\"jsonrpc\": \"2.0\", \"id\": 902, \"method\": \"run\", \"params\": {\"" CANARY "\": 1}}",
        "{\"jsonrpc\": \"2.0\", \"id\": 903, \"method\": \"record\", \"params\": {\"run_id\": "
        "\"" CANARY "\"}}",
        "{\"jsonrpc\": \"2.0\", \"id\": 904, \"method\": \"cancel\", \"params\": {\"run_id\": "
        "\"" CANARY "\"}}",
    };
    static const char *const wrong[] = {
        "{'" CANARY "': 1}",
        "{'language': '" CANARY " " CANARY "'}",
        "{'executor': '" CANARY "/'}",
        "{'env': {'" CANARY "-': 'x'}}",
        "{'files': [{'path': '../" CANARY "', 'text': 'x'}]}",
        "{'files': [{'path': 'x', 'base64': '" CANARY "!'}]}",
        "{'outputs': ['/" CANARY "']}",
        "{'grant': {'" CANARY "': 1}}",
        "{'grant': {'network': {'mode': '" CANARY "'}}}",
        "{'grant': {'network': {'mode': 'allowlist', 'hosts': ['" CANARY "']}}}",
        "{'grant': {'secrets': ['" CANARY "-']}}",
        "{'grant': {'filesystem': {'read': ['" CANARY "']}}}",
        "{'grant': {'limits': {'" CANARY "': 1}}}",
        "{'grant': {'limits': {'wall_ms': '" CANARY "'}}}",
    };
    for (size_t i = 0; i < AR_COUNT(lines); i++) {
        client_send_line(client, lines[i]);
        AR_AUTO_JSON json_t *answer = client_next(client);
        ck_assert_ptr_nonnull(json_object_get(answer, "error"));
        expect_clean_error(client, answer);
    }
    for (size_t i = 0; i < AR_COUNT(wrong); i++) {
        AR_AUTO_JSON json_t *error =
            client_fail(client, "run", client_params("bash", "echo " CANARY, wrong[i]));
        ck_assert_int_eq(json_integer_value(json_object_get(error, "code")), -32602);
        expect_clean("an error", client_last_line(client), strlen(client_last_line(client)));
    }
}

START_TEST(nothing_of_the_code_is_kept)
{
    struct daemon_options options = {.config = "[daemon]\nlog_level = debug\n"};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    send_code(client);
    send_faults(client);
    search_rows(daemon, 7);
    search_daemon(daemon); /* with the write-ahead log as it is */
    client_disconnect(client);
    ck_assert_int_eq(daemon_terminate(daemon), 0);
    search_daemon(daemon);
    daemon_free(daemon);
}
END_TEST

START_TEST(nothing_of_the_code_is_in_the_database)
{
    struct postgres_server *server = postgres_start();
    ck_assert_ptr_nonnull(server);
    struct daemon_options options = {.config = "[daemon]\nlog_level = debug\n",
                                     .ledger_url = postgres_url(server)};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    send_code(client);
    send_faults(client);
    search_rows(daemon, 7);
    AR_AUTO_FREE char *dump =
        postgres_sql(daemon_ledger(daemon), "select database_to_xml(true, true, '')::text");
    ck_assert_ptr_nonnull(dump);
    ck_assert_ptr_nonnull(strstr(dump, "compile_failed")); /* it is the whole of it */
    expect_clean("the database", dump, strlen(dump));
    client_disconnect(client);
    search_daemon(daemon);
    daemon_free(daemon);
    postgres_free(server);
}
END_TEST

/* ---- what a provider says ----------------------------------------------------------------------- */

static const char *const talkers[] = {"well",
                                      "rubbish",
                                      "unknown-message",
                                      "unknown-outcome",
                                      "unknown-member",
                                      "no-envelope",
                                      "crash-before",
                                      "setup-failed",
                                      NULL};

START_TEST(nothing_that_a_provider_says_is_kept)
{
    struct daemon *daemon = fake_daemon(talkers, 1, "[daemon]\nlog_level = debug\n");
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; talkers[i]; i++) {
        AR_AUTO_JSON json_t *result = fake_run(
            client, talkers[i], "tell said-" CANARY "\nprint " CANARY "\nerror " CANARY "\nfault",
            "{" GRANT "}");
        ck_assert_ptr_nonnull(json_object_get(result, "status"));
    }
    search_rows(daemon, AR_COUNT(talkers) - 1);
    search_daemon(daemon);
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    ck_assert_ptr_null(strstr(log, "CANARY-RUBBISH"));
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- what is kept while the ledger is away ------------------------------------------------------- */

START_TEST(nothing_of_the_code_is_in_the_journal)
{
    struct daemon *daemon = fake_daemon(talkers, 1,
                                        "[daemon]\nlog_level = debug\n[ledger]\ndeadline = 500ms\n"
                                        "when_down = keep\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_FREE char *ledger = daemon_path(daemon, "ledger.db");
    AR_AUTO_FREE char *away = daemon_path(daemon, "ledger.away");
    ck_assert_int_eq(rename(ledger, away), 0);
    AR_AUTO_JSON json_t *error =
        client_fail(client, "run", fake_params("well", "print " CANARY, "{" SEEDED "}"));
    client_expect_error(error, -32001, NULL, NULL);
    expect_clean("an error", client_last_line(client), strlen(client_last_line(client)));
    client_request(client, 1, "run",
                   fake_params("well", "print " CANARY "\nsleep 60000",
                               "{'stream': true, 'stdin': '" CANARY "'}"));
    AR_AUTO_JSON json_t *up = client_next(client);
    ck_assert_ptr_nonnull(json_object_get(up, "method"));
    daemon_kill9(daemon); /* a kept record and an intent */
    search_daemon(daemon);
    ck_assert_int_eq(rename(away, ledger), 0);
    client_disconnect(client);
    daemon_start_again(daemon);
    struct rows rows = rows_wait(daemon_ledger(daemon), 2, 20000);
    rows_free(&rows);
    search_rows(daemon, 2);
    search_daemon(daemon);
    daemon_free(daemon);
}
END_TEST

/* ---- main --------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("secrecy");
    TCase *tcase = e2e_case(suite, "secrecy");
    tcase_add_test(tcase, the_search_finds_a_canary);
    tcase_add_test(tcase, nothing_of_the_code_is_kept);
    tcase_add_test(tcase, nothing_of_the_code_is_in_the_database);
    tcase_add_test(tcase, nothing_that_a_provider_says_is_kept);
    tcase_add_test(tcase, nothing_of_the_code_is_in_the_journal);
    return e2e_run(suite);
}

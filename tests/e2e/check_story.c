/*
 * check_story.c - one plugin run with all that a grant can give, from end to end (docs/tutorial.md tells
 * it to people): it reads its secret, calls the data API with a method that is granted and one that is
 * not, fetches from a granted host over HTTPS and is refused another, and writes an artifact that comes
 * back. The record names all of it and holds no value.
 *
 * And the faults of the services around it: none holds up the run longer than its deadline, or harms the
 * daemon.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/data_service.h"
#include "tests/lib/host.h"
#include "tests/lib/internet.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEY "open/sesame+CANARY"

struct story {
    struct internet *internet;
    struct data_service service;
    struct daemon *daemon;
    struct client *client;
};

static void put_secret(const struct daemon *daemon)
{
    AR_AUTO_FREE char *secrets = daemon_path(daemon, "secrets");
    AR_AUTO_FREE char *company = daemon_path(daemon, "secrets/acme");
    AR_AUTO_FREE char *key = daemon_path(daemon, "secrets/acme/RATES_KEY");
    ck_assert_int_eq(mkdir(secrets, 0700), 0);
    ck_assert_int_eq(mkdir(company, 0700), 0);
    daemon_write_file(key, KEY "\n", 0600);
    ck_assert_int_eq(chmod(key, 0600), 0);
}

static struct story begin(void)
{
    struct story story = {.internet = internet_start(),
                          .daemon = daemon_prepare(&(struct daemon_options){0})};
    AR_AUTO_FREE char *config = NULL;
    AR_AUTO_FREE char *socket = daemon_path(story.daemon, "api.sock");
    ck_assert(data_service_start(&story.service, socket));
    ck_assert_int_gt(asprintf(&config,
                              INTERNET_CONFIG "[secrets]\ndirectory = %s/secrets\n"
                                              "[data-port]\nsocket = %s\ntimeout = 500ms\n",
                              daemon_folder(story.daemon), socket),
                     0);
    put_secret(story.daemon);
    daemon_configure(story.daemon, config);
    daemon_start_again(story.daemon);
    story.client = daemon_connect(story.daemon);
    return story;
}

static void end(struct story *story)
{
    client_disconnect(story->client);
    daemon_free(story->daemon);
    data_service_stop(&story->service);
    internet_end(story->internet);
}

static const char plugin[] =
    "import auditrun, ssl, urllib.request\n"
    "key = open('/run/secrets/RATES_KEY').read().strip()\n"
    "answer = auditrun.call('invoices.read', {'month': '2026-11', 'company': 'globex'})\n"
    "print(answer['company'], len(answer['invoices']) > 0)\n"
    "try:\n    auditrun.call('invoices.delete', {'id': 1})\n"
    "except auditrun.Error as error:\n    print(error.message)\n"
    "context = ssl.create_default_context(cafile='ca.crt')\n"
    "request = urllib.request.Request('https://ok.t.test/rates', headers={'X-Key': key})\n"
    "text = urllib.request.urlopen(request, context=context).read().decode()\n"
    "print(text.strip())\n"
    "try:\n    urllib.request.urlopen('https://other.t.test/CANARY', context=context)\n"
    "except OSError as error:\n    print('403' in str(error))\n"
    "open('report.txt', 'w').write('made with ' + key + '\\n')\n"
    "print('the key is', key)\n";

#define GRANT                                                                         \
    "'grant': {'secrets': ['RATES_KEY'], 'data_api': ['invoices.read'], 'network': {" \
    "'mode': 'allowlist', 'hosts': ['ok.t.test:443']}}"

static json_t *plugin_params(const struct story *story)
{
    AR_AUTO_FREE char *authority = internet_authority(story->internet);
    json_t *params = client_params("python", plugin, "{'outputs': ['report.txt'], " GRANT "}");
    json_t *files = json_pack("[{s:s, s:s}]", "path", "ca.crt", "text", authority);
    ck_assert_int_eq(json_object_set_new(params, "files", files), 0);
    return params;
}

static void expect_record(const struct story *story, const json_t *result)
{
    struct rows rows = rows_read(daemon_ledger(story->daemon));
    const struct record *record =
        rows_find(&rows, json_string_value(json_object_get(result, "run_id")));
    static const char *const named[] = {"\"RATES_KEY\"", "\"invoices.read\"", "\"ok.t.test:443\""};
    for (size_t i = 0; i < AR_COUNT(named); i++)
        ck_assert_msg(strstr(record->grant, named[i]), "%s", record->grant);
    AR_AUTO_JSON json_t *usage = json_loads(record->usage, 0, NULL);
    AR_AUTO_JSON json_t *expected = client_json("{'calls': 1, 'denials': 1}");
    const json_t *data_api = json_object_get(usage, "data_api");
    ck_assert(json_equal(json_object_get(data_api, "calls"), json_object_get(expected, "calls")));
    ck_assert(
        json_equal(json_object_get(data_api, "denials"), json_object_get(expected, "denials")));
    ck_assert_ptr_nonnull(strstr(record->usage, "\"connections\":1"));
    ck_assert_ptr_nonnull(strstr(record->usage, "\"refusals\":1"));
    ck_assert_ptr_null(strstr(record->usage, "t.test"));
    rows_free(&rows);
}

static void expect_nowhere(const struct story *story)
{
    AR_AUTO_FREE char *log = daemon_read_log(story->daemon);
    AR_AUTO_FREE char *ledger = daemon_path(story->daemon, "ledger.db");
    AR_AUTO_FREE char *journal = daemon_path(story->daemon, "journal/journal");
    ck_assert_ptr_null(strstr(log, "CANARY"));
    ck_assert(!host_file_has(ledger, "CANARY"));
    ck_assert(!host_file_has(journal, "CANARY"));
}

START_TEST(a_plugin_run)
{
    struct story story = begin();
    AR_AUTO_JSON json_t *result = client_call(story.client, "run", plugin_params(&story));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "acme True\nmethod_not_granted\nhello from the net\nTrue\n"
                                         "the key is ***\n");
    const json_t *output = json_array_get(json_object_get(result, "outputs"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(output, "text")), "made with ***\n");
    rows_expect_result(daemon_ledger(story.daemon), result);
    expect_record(&story, result);
    expect_nowhere(&story);
    AR_AUTO_FREE char *requests = internet_notes(story.internet, "requests");
    ck_assert_str_eq(requests, "GET ok.t.test /rates\n");
    end(&story);
}
END_TEST

/* ---- a service that fails --------------------------------------------------------------------- */

static const char failing[] =
    "import auditrun\n"
    "for method in ('hang', 'die', 'rubbish', 'wrong_id', 'fail', 'echo'):\n"
    "    try:\n        answer = auditrun.call(method, {'n': 1})\n"
    "        print(method, sorted(answer))\n"
    "    except auditrun.Error as error:\n        print(method, error.message)\n";

START_TEST(a_service_that_fails_fails_the_call)
{
    struct story story = begin();
    AR_AUTO_JSON json_t *result = client_call(
        story.client, "run",
        client_params("python", failing,
                      "{'grant': {'data_api': ['hang', 'die', 'rubbish', 'wrong_id', 'fail', "
                      "'echo']}}"));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "hang timeout\ndie unavailable\nrubbish bad_answer\n"
                                         "wrong_id bad_answer\nfail no such invoice\n"
                                         "echo ['context', 'params']\n");
    rows_expect_result(daemon_ledger(story.daemon), result);
    end(&story);
}
END_TEST

/* Shells write to the descriptor; who has no data port has none. */
START_TEST(a_shell_and_who_has_none)
{
    struct story story = begin();
    AR_AUTO_JSON json_t *granted = client_call(
        story.client, "run",
        client_params(
            "bash",
            "echo '{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\",\"params\":[1]}' >&3\n"
            "read -r line <&3; [[ $line == *'\"id\":7'*'\"run_id\"'* ]] && echo answered\n"
            "ls /proc/self/fd | tr '\\n' ' '\n",
            "{'grant': {'data_api': ['echo']}}"));
    client_expect(granted, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(granted), "answered\n0 1 2 3 4 ");
    AR_AUTO_JSON json_t *none = client_call(
        story.client, "run",
        client_params(
            "bash", "echo ${AUDITRUN_API_FD-unset}; (echo x >&3) 2>/dev/null || echo shut", NULL));
    client_expect(none, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(none), "unset\nshut\n");
    end(&story);
}
END_TEST

START_TEST(a_service_that_is_not_there)
{
    struct story story = begin();
    data_service_stop(&story.service);
    AR_AUTO_JSON json_t *result = client_call(
        story.client, "run",
        client_params("python",
                      "import auditrun\n"
                      "for i in range(3):\n"
                      "    try:\n        auditrun.call('echo')\n"
                      "    except auditrun.Error as error:\n        print(error.message)\n",
                      "{'grant': {'data_api': ['echo']}}"));
    client_expect(result, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_stdout(result), "unavailable\nunavailable\nunavailable\n");
    end(&story);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {
        &a_plugin_run,
        &a_service_that_fails_fails_the_call,
        &a_shell_and_who_has_none,
        &a_service_that_is_not_there,
        NULL,
    };
    if (geteuid() != 0) {
        (void)fprintf(stderr, "SKIPPED: only root can make networks\n");
        return 77;
    }
    return e2e_main("story", tests);
}

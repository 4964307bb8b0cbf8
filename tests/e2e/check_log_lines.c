/*
 * check_log_lines.c - one line a run, with the facts of its record, and nothing of what a client, its code
 * or a provider has said.
 */
#include "tests/e2e/e2e.h"

#define CANARY   "CANARY-c04e"
#define TRACE_ID "4bf92f3577b34da6a3ce929d0e0e4736"

/* The line of the run, which must be the only one that names it; malloc'd. */
static char *line_of(const struct daemon *daemon, const json_t *result)
{
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    const char *run_id = json_string_value(json_object_get(result, "run_id"));
    ck_assert_ptr_nonnull(run_id);
    char *found = strstr(log, run_id);
    ck_assert_msg(found != NULL, "%s is not in the log", run_id);
    ck_assert_ptr_null(strstr(found + 1, run_id));
    found[strcspn(found, "\n")] = '\0';
    return strdup(found);
}

static void expect_facts(const struct daemon *daemon, const json_t *result, const char *more)
{
    AR_AUTO_FREE char *line = line_of(daemon, result);
    const json_t *record = json_object_get(result, "record");
    const json_t *provider = json_object_get(json_object_get(result, "provider"), "name");
    char wanted[512], executor[80] = "";
    if (provider)
        (void)snprintf(executor, sizeof(executor), " executor=%s", json_string_value(provider));
    json_int_t wall_us =
        json_integer_value(json_object_get(json_object_get(result, "usage"), "wall_us"));
    if (!json_is_integer(json_object_get(json_object_get(result, "usage"), "wall_us")))
        wall_us = -1;
    (void)snprintf(wanted, sizeof(wanted),
                   "%s client=local status=%s reason=%s%s wall_us=%lld record=recorded seq=%lld%s",
                   json_string_value(json_object_get(result, "run_id")),
                   json_string_value(json_object_get(result, "status")),
                   json_string_value(json_object_get(result, "reason")), executor,
                   (long long)wall_us,
                   (long long)json_integer_value(json_object_get(record, "seq")), more);
    ck_assert_str_eq(line, wanted);
}

START_TEST(test_one_line_a_run)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *traced = client_call(
        client, "run",
        client_params("fake", "exit 3", "{'traceparent': '00-" TRACE_ID "-00f067aa0ba902b7-01'}"));
    AR_AUTO_JSON json_t *plain = client_call(client, "run", client_params("fake", "print", NULL));
    AR_AUTO_JSON json_t *denied = client_call(
        client, "run", client_params("fake", "", "{'grant': {'network': {'mode': 'open'}}}"));
    client_expect(traced, "failed", "exit_nonzero");
    client_expect(plain, "succeeded", "exit_zero");
    client_expect(denied, "capability_denied", "not_enforceable");
    expect_facts(daemon, traced, " trace_id=" TRACE_ID);
    expect_facts(daemon, plain, "");
    expect_facts(daemon, denied, "");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(test_nothing_that_was_said)
{
    struct daemon *daemon = e2e_fake_daemon("[daemon]\nlog_level = debug\n");
    struct client *client = daemon_connect(daemon);
    json_decref(client_call(
        client, "run",
        client_params("fake", "print " CANARY "\nerror " CANARY "\ntell " CANARY "\ncat\nfault",
                      "{'company': '" CANARY "', 'actor': '" CANARY "', 'purpose': '" CANARY
                      "', 'stdin': '" CANARY "', 'args': ['" CANARY "'], 'env': {'A': '" CANARY
                      "'}, 'idempotency_key': '" CANARY "'}")));
    AR_AUTO_JSON json_t *language =
        client_call(client, "run", client_params("fake", "", "{'language': 'canary-c04e'}"));
    client_expect(language, "capability_denied", "not_enforceable");
    AR_AUTO_JSON json_t *error =
        client_fail(client, "run", client_params("fake", "", "{'" CANARY "': 1}"));
    client_expect_error(error, -32602, "", "unknown_member");
    AR_AUTO_FREE char *log = daemon_read_log(daemon);
    ck_assert_ptr_nonnull(strstr(log, " status="));
    ck_assert_msg(!strcasestr(log, CANARY), "%s", log);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_one_line_a_run, &test_nothing_that_was_said, NULL};
    return e2e_main("log_lines", tests);
}

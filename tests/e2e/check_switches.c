/*
 * check_switches.c - execution that is switched off while the daemon runs.
 *
 * A disabled request starts nothing and has a row; what runs goes on, or ends with it; a switch outlives
 * the daemon, also one that was killed; who threw it stands in the ledger's chain.
 */
#include "tests/e2e/e2e.h"
#include "tests/e2e/gate.h"
#include "tests/lib/events.h"

#include <signal.h>

#define OPERATOR "[client local]\nswitches = yes\n"

/* ---- throwing ----------------------------------------------------------------------------------- */

static json_t *key_params(const char *scope, const char *name)
{
    return json_pack("{s:s, s:s*, s:s}", "scope", scope, "name", name, "why", "incident 42");
}

static void expect_bool(const json_t *result, const char *member, bool value)
{
    const json_t *found = json_object_get(result, member);
    ck_assert_msg(json_is_boolean(found) && json_is_true(found) == value, "%s is not %d", member,
                  value);
}

/* Must be a change, and durable; how many runs were told to end. */
static json_int_t throw_it(struct client *client, const char *method, json_t *params)
{
    AR_AUTO_JSON json_t *result = client_call(client, method, params);
    expect_bool(result, "changed", true);
    expect_bool(result, "durable", true);
    expect_bool(result, "configured_off", false);
    return json_integer_value(json_object_get(result, "stopped"));
}

static void disable(struct client *client, const char *scope, const char *name)
{
    ck_assert_int_eq(throw_it(client, "disable", key_params(scope, name)), 0);
}

static void enable(struct client *client, const char *scope, const char *name)
{
    ck_assert_int_eq(throw_it(client, "enable", key_params(scope, name)), 0);
}

/* ---- what is off -------------------------------------------------------------------------------- */

static const struct {
    const char *scope, *name, *reason;
} scopes[] = {
    {"all", NULL, "globally"},
    {"company", "acme", "company"},
    {"executor", "counted", "executor"},
    {"language", "fake", "language"},
};

START_TEST(what_is_off_starts_nothing)
{
    struct gate gate = gate_open(OPERATOR);
    gate_served(&gate, gate_params(NULL));
    disable(gate.client, scopes[_i].scope, scopes[_i].name);
    gate_refused(&gate, gate_params(NULL), "disabled", scopes[_i].reason);
    gate_refused(&gate, gate_params("{'executor': 'counted'}"), "disabled", scopes[_i].reason);
    enable(gate.client, scopes[_i].scope, scopes[_i].name);
    gate_served(&gate, gate_params(NULL));
    gate_close(&gate);
}
END_TEST

START_TEST(others_are_not_touched)
{
    struct gate gate = gate_open(
        OPERATOR "[language lua]\nenabled = yes\n[executor spare]\nprogram = /bin/false\n");
    disable(gate.client, "company", "globex");
    disable(gate.client, "language", "lua");
    disable(gate.client, "executor", "spare");
    gate_served(&gate, gate_params(NULL));
    gate_refused(&gate, gate_params("{'company': 'globex'}"), "disabled", "company");
    gate_close(&gate);
}
END_TEST

/* ---- who and how -------------------------------------------------------------------------------- */

START_TEST(each_throw_is_an_event)
{
    struct daemon *daemon = e2e_fake_daemon(OPERATOR);
    struct client *client = daemon_connect(daemon);
    disable(client, "company", "acme");
    AR_AUTO_JSON json_t *again = client_call(client, "disable", key_params("company", "acme"));
    expect_bool(again, "changed", false);
    enable(client, "company", "acme");
    AR_AUTO_JSON json_t *events =
        events_wait(daemon_ledger(daemon), EVENT_SWITCHED, 2, CLIENT_WAIT_MS);
    ck_assert_uint_eq(json_array_size(events), 2);
    for (size_t i = 0; i < 2; i++) {
        AR_AUTO_JSON json_t *wanted =
            json_pack("{s:b, s:s, s:s, s:s, s:s, s:I, s:I, s:i}", "off", i == 0, "scope", "company",
                      "name", "acme", "why", "incident 42", "client", "local", "uid",
                      (json_int_t)getuid(), "pid", (json_int_t)getpid(), "stopped", 0);
        ck_assert(json_equal(json_array_get(events, i), wanted));
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(switches_are_listed)
{
    struct daemon *daemon =
        e2e_fake_daemon(OPERATOR "[company globex]\nenabled = no\n[language lua]\nenabled = no\n");
    struct client *client = daemon_connect(daemon);
    disable(client, "all", NULL);
    AR_AUTO_JSON json_t *result = client_call(client, "switches", NULL);
    const json_t *list = json_object_get(result, "switches");
    ck_assert_uint_eq(json_array_size(list), 3);
    const json_t *mine = json_array_get(list, 2);
    ck_assert(json_is_null(json_object_get(mine, "name")));
    ck_assert_str_eq(json_string_value(json_object_get(mine, "source")), "operator");
    ck_assert_str_eq(json_string_value(json_object_get(mine, "why")), "incident 42");
    ck_assert_str_eq(json_string_value(json_object_get(mine, "client")), "local");
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(list, 0), "source")),
                     "configuration");
    /* What the configuration has off, an operator cannot switch on. */
    AR_AUTO_JSON json_t *on = client_call(client, "enable", key_params("company", "globex"));
    expect_bool(on, "changed", false);
    expect_bool(on, "configured_off", true);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(only_some_clients_may)
{
    struct daemon *daemon = e2e_fake_daemon(NULL);
    struct client *client = daemon_connect(daemon);
    static const char *const methods[] = {"disable", "enable", "switches"};
    for (size_t i = 0; i < AR_COUNT(methods); i++) {
        json_t *params = i < 2 ? key_params("company", "acme") : NULL;
        AR_AUTO_JSON json_t *error = client_fail(client, methods[i], params);
        client_expect_error(error, -32002, NULL, NULL);
    }
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", NULL));
    client_expect(result, "succeeded", "exit_zero");
    AR_AUTO_JSON json_t *events = events_read(daemon_ledger(daemon), EVENT_SWITCHED);
    ck_assert_uint_eq(json_array_size(events), 0);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

static const struct {
    const char *params, *path, *problem;
} wrong[] = {
    {"{'scope': 'all'}", "/why", "missing"},
    {"{'why': 'x'}", "/scope", "missing"},
    {"{'scope': 'everything', 'why': 'x'}", "/scope", "not_allowed_word"},
    {"{'scope': 'company', 'why': 'x'}", "/name", "missing"},
    {"{'scope': 'all', 'name': 'acme', 'why': 'x'}", "/name", "conflict"},
    {"{'scope': 'language', 'name': 'No Name', 'why': 'x'}", "/name", "malformed"},
    {"{'scope': 'company', 'name': 'acme', 'why': ''}", "/why", "empty"},
    {"{'scope': 'company', 'name': 'acme', 'why': 'x\\ty'}", "/why", "control_character"},
    {"{'scope': 'all', 'why': 'x', 'soon': true}", "/soon", "unknown_member"},
    {"{'scope': 'all', 'why': 'x', 'now': 'yes'}", "/now", "wrong_type"},
};

START_TEST(params_that_are_wrong)
{
    struct daemon *daemon = e2e_fake_daemon(OPERATOR);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(wrong); i++) {
        AR_AUTO_JSON json_t *error = client_fail(client, "disable", client_json(wrong[i].params));
        client_expect_error(error, -32602, wrong[i].path, wrong[i].problem);
    }
    AR_AUTO_JSON json_t *now =
        client_fail(client, "enable", client_json("{'scope': 'all', 'why': 'x', 'now': true}"));
    client_expect_error(now, -32602, "/now", "unknown_member");
    /* A slip of the pen must not look as if something were off. */
    AR_AUTO_JSON json_t *language =
        client_fail(client, "disable", key_params("language", "pyhton"));
    client_expect_error(language, -32003, NULL, NULL);
    AR_AUTO_JSON json_t *executor = client_fail(client, "disable", key_params("executor", "fke"));
    client_expect_error(executor, -32003, NULL, NULL);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- what is under way -------------------------------------------------------------------------- */

static bool one_runs(void *context)
{
    return e2e_status(context, "runs", "running") == 1;
}

/* One runs, one waits: the one that waits has not begun, and does not any more. */
START_TEST(what_runs_goes_on)
{
    struct daemon *daemon = e2e_fake_daemon(OPERATOR "[limits]\nmax_running = 1\n");
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "sleep 1500\nprint 1", NULL));
    ck_assert(processes_wait(one_runs, client, CLIENT_WAIT_MS));
    client_request(client, 2, "run", client_params("fake", "print 2", NULL));
    disable(client, "company", "acme");
    AR_AUTO_JSON json_t *second = client_result(client, 2);
    client_expect(second, "disabled", "company");
    AR_AUTO_JSON json_t *first = client_result(client, 1);
    client_expect(first, "succeeded", "exit_zero");
    rows_expect(daemon_ledger(daemon), 2);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(or_is_cancelled_now)
{
    struct daemon *daemon = e2e_fake_daemon(OPERATOR);
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run", client_params("fake", "sleep 60000", NULL));
    ck_assert(processes_wait(one_runs, client, CLIENT_WAIT_MS));
    json_t *params = key_params("language", "fake");
    ck_assert_int_eq(json_object_set_new(params, "now", json_true()), 0);
    ck_assert_int_eq(throw_it(client, "disable", params), 1);
    AR_AUTO_JSON json_t *result = client_result(client, 1);
    client_expect(result, "cancelled", "shutdown");
    rows_expect_result(daemon_ledger(daemon), result);
    AR_AUTO_JSON json_t *events =
        events_wait(daemon_ledger(daemon), EVENT_SWITCHED, 1, CLIENT_WAIT_MS);
    ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(events, 0), "stopped")), 1);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- restarts ----------------------------------------------------------------------------------- */

static void expect_run(struct client *client, const char *more, const char *status,
                       const char *reason)
{
    AR_AUTO_JSON json_t *result =
        client_call(client, "run", client_params("fake", "print 1", more));
    client_expect(result, status, reason);
}

/* Also over kill -9, in both directions, and over a journal that was written anew meanwhile. */
START_TEST(switches_outlive_the_daemon)
{
    enum { RUNS = 200 };
    struct daemon *daemon = e2e_fake_daemon(OPERATOR "[journal]\nmax_size = 1M\n");
    struct client *client = daemon_connect(daemon);
    disable(client, "company", "globex");
    disable(client, "company", "initech");
    for (json_int_t id = 1; id <= RUNS; id++)
        client_request(client, id, "run", client_params("fake", "print 1", NULL));
    for (json_int_t id = 1; id <= RUNS; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "succeeded", "exit_zero");
    }
    enable(client, "company", "initech");
    client_disconnect(client);
    daemon_kill9(daemon);
    for (int i = 0; i < 2; i++) {
        daemon_start_again(daemon);
        client = daemon_connect(daemon);
        expect_run(client, "{'company': 'globex'}", "disabled", "company");
        expect_run(client, "{'company': 'initech'}", "succeeded", "exit_zero");
        expect_run(client, NULL, "succeeded", "exit_zero");
        client_disconnect(client);
        ck_assert_int_eq(daemon_terminate(daemon), 0);
    }
    daemon_start_again(daemon);
    client = daemon_connect(daemon);
    enable(client, "company", "globex");
    client_disconnect(client);
    daemon_kill9(daemon);
    daemon_start_again(daemon);
    client = daemon_connect(daemon);
    expect_run(client, "{'company': 'globex'}", "succeeded", "exit_zero");
    AR_AUTO_JSON json_t *result = client_call(client, "switches", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "switches")), 0);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &others_are_not_touched, &each_throw_is_an_event,      &switches_are_listed,
        &only_some_clients_may,  &params_that_are_wrong,       &what_runs_goes_on,
        &or_is_cancelled_now,    &switches_outlive_the_daemon,
    };
    Suite *suite = suite_create("switches");
    TCase *tcase = e2e_case(suite, "switches");
    tcase_add_loop_test(tcase, what_is_off_starts_nothing, 0, AR_COUNT(scopes));
    for (size_t i = 0; i < AR_COUNT(tests); i++)
        tcase_add_test(tcase, *tests[i]);
    return e2e_run(suite);
}

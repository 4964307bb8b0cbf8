/*
 * check_provider.c - a provider may do what it likes: its run ends truthfully, and only its run.
 *
 * One daemon for each fault of the fake provider (tests/tools/fake_provider.c). After every run there
 * is one row that says what the answer said, and nothing of the run lives.
 */
#include "tests/e2e/e2e.h"
#include "tests/lib/fake.h"

#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void count_below(const struct daemon *daemon, size_t most)
{
    struct processes below = daemon_processes(daemon);
    ck_assert_msg(below.count <= most, "%zu processes below the daemon, at most %zu expected",
                  below.count, most);
    processes_free(&below);
}

static int64_t timed_run(struct client *client, json_t *params, json_t **result)
{
    int64_t start = processes_now_ms();
    *result = client_call(client, "run", params);
    return processes_now_ms() - start;
}

/* ---- faults of providers ---------------------------------------------------------------------- */

#define WALL "{'grant': {'limits': {'wall_ms': 1000}}}"

static const struct provider_fault {
    const char *mode;
    const char *status, *reason; /* of the run that has the fault */
    const char *next; /* reason of the next run there: "exit_zero" if it can be a good one */
} provider_faults[] = {
    {"well", "succeeded", "exit_zero", "exit_zero"},
    {"no-limits", "succeeded", "exit_zero", "exit_zero"},
    {"once", "succeeded", "exit_zero", "exit_zero"},
    {"exit-at-once", "provider_failed", "spawn_failed", "spawn_failed"},
    {"hang-before-ready", "timed_out", "wall_clock", "wall_clock"},
    {"report-before-ready", "provider_failed", "protocol_violation", "protocol_violation"},
    {"hang", "timed_out", "wall_clock", "exit_zero"},
    {"stubborn", "timed_out", "wall_clock", "exit_zero"},
    {"late-success", "timed_out", "wall_clock", "exit_zero"},
    {"flood-ready", "provider_failed", "protocol_violation", "exit_zero"},
    {"flood-report", "succeeded", "exit_zero", "exit_zero"},
    {"oversize", "provider_failed", "protocol_violation", "exit_zero"},
    {"descriptors", "provider_failed", "protocol_violation", "exit_zero"},
    {"empty", "provider_failed", "crashed", "exit_zero"},
    {"rubbish", "provider_failed", "protocol_violation", "exit_zero"},
    {"unknown-message", "provider_failed", "protocol_violation", "exit_zero"},
    {"unknown-outcome", "provider_failed", "protocol_violation", "exit_zero"},
    {"unknown-member", "provider_failed", "protocol_violation", "exit_zero"},
    {"wrong-limit", "provider_failed", "protocol_violation", "exit_zero"},
    {"wrong-code", "provider_failed", "protocol_violation", "exit_zero"},
    {"no-code", "provider_failed", "protocol_violation", "exit_zero"},
    {"ready-in-run", "provider_failed", "protocol_violation", "exit_zero"},
    {"setup-failed", "provider_failed", "setup_failed", "exit_zero"},
    {"crash-before", "provider_failed", "crashed", "exit_zero"},
    {"exit-before", "provider_failed", "crashed", "exit_zero"},
    {"close-control", "provider_failed", "crashed", "exit_zero"},
    {"crash-after", "succeeded", "exit_zero", "exit_zero"},
    {"twice", "succeeded", "exit_zero", "exit_zero"},
    {"no-ready", "succeeded", "exit_zero", "exit_zero"},
    {"no-envelope", "capability_denied", "no_executor", "no_executor"},
    {"bad-exit", "capability_denied", "no_executor", "no_executor"},
};

/* The fault, and then a good run there and elsewhere. */
START_TEST(a_provider_that_breaks_the_contract_fails_its_run_only)
{
    const struct provider_fault *fault = &provider_faults[_i];
    const char *const modes[] = {fault->mode, "good", NULL};
    AR_AUTO_FREE char *config = fake_config(modes, 1, NULL);
    struct daemon_options options = {.config = config};
    struct daemon *daemon = daemon_new(&options);
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *result;
    int64_t took =
        timed_run(client, fake_params(fault->mode, "print before\nfault", WALL), &result);
    client_expect(result, fault->status, fault->reason);
    count_below(daemon, 2);
    rows_expect_result(daemon_ledger(daemon), result);
    ck_assert_int_lt(took, 1000 + 1000 + 1500); /* wall clock, SIGTERM to SIGKILL, a busy machine */

    const char *longer = "{'grant': {'limits': {'wall_ms': 8000}}}";
    AR_AUTO_JSON json_t *next = fake_run(client, fault->mode, "print next",
                                         strcmp(fault->next, "wall_clock") == 0 ? WALL : longer);
    ck_assert_str_eq(json_string_value(json_object_get(next, "reason")), fault->next);
    rows_expect_result(daemon_ledger(daemon), next);
    fake_expect(daemon, client, "good", "print good", NULL, "succeeded", "exit_zero");
    count_below(daemon, 2);
    rows_expect(daemon_ledger(daemon), 3);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

#define NETWORK                                                                        \
    "{'grant': {'network': {'mode': 'allowlist', 'hosts': ['a.test:80']}, 'limits': {" \
    "'wall_ms': 3000}}}"

static const struct provider_fault listener_faults[] = {
    {"listener-well", "succeeded", "exit_zero", "exit_zero"},
    {"listener-bare", "provider_failed", "protocol_violation", "exit_zero"},
    {"listener-file", "provider_failed", "protocol_violation", "exit_zero"},
    {"listener-here", "provider_failed", "protocol_violation", "exit_zero"},
    {"listener-twice", "provider_failed", "protocol_violation", "exit_zero"},
};

/* A listener is taken once, in a run that has a network, and only from another network namespace. */
START_TEST(a_listener_that_is_none_fails_its_run_only)
{
    const struct provider_fault *fault = &listener_faults[_i];
    const char *const modes[] = {fault->mode, NULL};
    struct daemon *daemon = fake_daemon(modes, 2, NULL);
    struct client *client = daemon_connect(daemon);
    fake_expect(daemon, client, fault->mode, "print before\nfault", NETWORK, fault->status,
                fault->reason);
    fake_expect(daemon, client, fault->mode, "print next", NETWORK, "succeeded", "exit_zero");
    fake_expect(daemon, client, fault->mode, "fault", WALL, "provider_failed",
                "protocol_violation");
    fake_expect(daemon, client, fault->mode, "print last", NULL, "succeeded", "exit_zero");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* A provider may exit after a report: whoever comes next does not pay for it. */
START_TEST(a_provider_that_serves_once_serves_all_the_same)
{
    static const char *const modes[] = {"once", NULL};
    struct daemon *daemon = fake_daemon(modes, 2, NULL);
    struct client *client = daemon_connect(daemon);
    const int count = 60;
    for (json_int_t id = 1; id <= count; id++)
        client_request(client, id, "run", fake_params("once", "print x", NULL));
    for (json_int_t id = 1; id <= count; id++) {
        AR_AUTO_JSON json_t *result = client_result(client, id);
        client_expect(result, "succeeded", "exit_zero");
    }
    rows_expect(daemon_ledger(daemon), (size_t)count);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* Each slot of the daemon has a control group and a number of its own, whoever's it is. */
START_TEST(an_executor_that_is_killed_takes_no_other_along)
{
    static const char *const modes[] = {"well", "stubborn", NULL};
    struct daemon *daemon = fake_daemon(modes, 1, NULL);
    struct client *client = daemon_connect(daemon);
    client_request(client, 1, "run", fake_params("well", "sleep 2500\nprint done", NULL));
    client_request(client, 2, "run", fake_params("stubborn", "fault", WALL));
    AR_AUTO_JSON json_t *killed = client_result(client, 2);
    AR_AUTO_JSON json_t *well = client_result(client, 1);
    client_expect(killed, "timed_out", "wall_clock");
    client_expect(well, "succeeded", "exit_zero");
    ck_assert_str_eq(e2e_text(well, "stdout"), "done");
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* A provider without a pid namespace, whose children get away from it. */
START_TEST(what_leaves_a_provider_is_killed)
{
    static const char *const codes[] = {"print a\nchild", "print a\noutlive",
                                        "print a\noutlive\noutlive\nchild"};
    static const char *const modes[] = {"well", NULL};
    struct daemon *daemon = fake_daemon(modes, 1, NULL);
    struct client *client = daemon_connect(daemon);
    for (size_t i = 0; i < AR_COUNT(codes); i++) {
        AR_AUTO_JSON json_t *result;
        int64_t took = timed_run(client, fake_params("well", codes[i], WALL), &result);
        count_below(daemon, 1);
        client_expect(result, "succeeded", "exit_zero");
        ck_assert_str_eq(e2e_text(result, "stdout"), "a");
        ck_assert_int_lt(took, 400); /* nobody waits for pipes that nobody will write to */
        rows_expect_result(daemon_ledger(daemon), result);
    }
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

/* ---- main ------------------------------------------------------------------------------------- */

int main(void)
{
    Suite *suite = suite_create("provider");
    TCase *faults = e2e_case(suite, "faults");
    tcase_add_loop_test(faults, a_provider_that_breaks_the_contract_fails_its_run_only, 0,
                        AR_COUNT(provider_faults));
    if (geteuid() == 0) /* network namespaces are made */
        tcase_add_loop_test(faults, a_listener_that_is_none_fails_its_run_only, 0,
                            AR_COUNT(listener_faults));
    TCase *others = e2e_case(suite, "others");
    tcase_add_test(others, a_provider_that_serves_once_serves_all_the_same);
    tcase_add_test(others, an_executor_that_is_killed_takes_no_other_along);
    tcase_add_test(others, what_leaves_a_provider_is_killed);
    return e2e_run(suite);
}

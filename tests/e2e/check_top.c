/*
 * check_top.c - the method `top`: what runs, what has ended, in which order, and only of companies that
 * the client may speak for.
 */
#include "tests/e2e/e2e.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define OTHER_UID 4343

static const char *text_in(const json_t *list, size_t i, const char *member)
{
    return json_string_value(json_object_get(json_array_get(list, i), member));
}

static json_int_t number_in(const json_t *list, size_t i, const char *member)
{
    const json_t *value = json_object_get(json_array_get(list, i), member);
    ck_assert(json_is_integer(value));
    return json_integer_value(value);
}

static bool first_runs_second_waits(void *context)
{
    struct client *client = context;
    AR_AUTO_JSON json_t *top = client_call(client, "top", NULL);
    const json_t *running = json_object_get(top, "running");
    return json_array_size(running) == 2 && strcmp(text_in(running, 0, "state"), "running") == 0 &&
           strcmp(text_in(running, 1, "state"), "admitted") == 0;
}

static void request_sleep(struct client *client, json_int_t id, const char *company)
{
    json_t *params = client_params("fake", "sleep 60000", NULL);
    ck_assert_int_eq(json_object_set_new(params, "company", json_string(company)), 0);
    client_request(client, id, "run", params);
}

static void cancel(struct client *client, json_int_t id)
{
    json_decref(client_call(client, "cancel", json_pack("{s:I}", "request_id", id)));
    AR_AUTO_JSON json_t *result = client_result(client, id);
    client_expect(result, "cancelled", "client_cancelled");
}

START_TEST(test_what_runs_and_what_has_ended)
{
    struct daemon *daemon = e2e_fake_daemon("[limits]\nmax_running = 1\n");
    struct client *client = daemon_connect(daemon);
    AR_AUTO_JSON json_t *before = client_call(client, "top", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(before, "running")), 0);
    ck_assert_uint_eq(json_array_size(json_object_get(before, "recent")), 0);
    AR_AUTO_JSON json_t *done = client_call(client, "run", client_params("fake", "exit 3", NULL));
    json_decref(client_call(client, "run",
                            client_params("fake", "", "{'grant': {'network': {'mode': 'open'}}}")));
    request_sleep(client, 1, "acme");
    request_sleep(client, 2, "globex");
    ck_assert(processes_wait(first_runs_second_waits, client, 20000));
    AR_AUTO_JSON json_t *top = client_call(client, "top", NULL);
    const json_t *running = json_object_get(top, "running");
    const json_t *recent = json_object_get(top, "recent");
    ck_assert_str_eq(text_in(running, 0, "company"), "acme");
    ck_assert_str_eq(text_in(running, 0, "actor"), "actor-1");
    ck_assert_str_eq(text_in(running, 0, "executor"), "fake");
    ck_assert_str_eq(text_in(running, 0, "client"), "local");
    ck_assert_str_eq(text_in(running, 1, "company"), "globex");
    ck_assert_int_ge(number_in(running, 0, "age_ms"), number_in(running, 1, "age_ms"));
    ck_assert_int_le(number_in(running, 0, "in_state_ms"), number_in(running, 0, "age_ms"));
    ck_assert_uint_eq(json_array_size(recent), 2);
    ck_assert_str_eq(text_in(recent, 0, "status"), "capability_denied");
    ck_assert(json_is_null(json_object_get(json_array_get(recent, 0), "wall_us")));
    ck_assert_str_eq(text_in(recent, 1, "reason"), "exit_nonzero");
    ck_assert_int_gt(number_in(recent, 1, "wall_us"), 0);
    ck_assert_str_eq(text_in(recent, 1, "run_id"),
                     json_string_value(json_object_get(done, "run_id")));
    cancel(client, 1);
    cancel(client, 2);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

START_TEST(test_both_lists_are_bounded)
{
    enum { WAITING = 300, ENDED = 40 };
    struct daemon *daemon = e2e_fake_daemon("[socket]\nmax_pending = 400\n"
                                            "[limits]\nmax_running = 1\nmax_queued = 400\n");
    struct client *client = daemon_connect(daemon);
    for (int i = 0; i < ENDED; i++)
        json_decref(client_call(client, "run", client_params("fake", "print", NULL)));
    for (json_int_t id = 1; id <= WAITING; id++)
        request_sleep(client, id, "acme");
    AR_AUTO_JSON json_t *top = client_call(client, "top", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(top, "running")), 256);
    ck_assert_int_eq(json_integer_value(json_object_get(top, "more")), WAITING - 256);
    ck_assert_uint_eq(json_array_size(json_object_get(top, "recent")), 32);
    client_disconnect(client);
    daemon_free(daemon);
}
END_TEST

static int connect_as(const struct daemon *daemon, uid_t uid)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0;
    memcpy(address.sun_path, daemon_socket(daemon), strlen(daemon_socket(daemon)) + 1);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        _exit(setgid(uid) == 0 && setuid(uid) == 0 &&
                      connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0
                  ? 0
                  : 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return fd;
}

/* The other client may speak for globex alone: of acme it sees nothing, not even how many. */
START_TEST(test_companies_of_others)
{
    if (geteuid() != 0)
        return; /* nobody else can be played */
    struct daemon *daemon = e2e_fake_daemon("[client other]\nuid = 4343\ncompanies = globex\n");
    struct client *client = daemon_connect(daemon);
    struct client *other = client_adopt(connect_as(daemon, OTHER_UID));
    json_decref(client_call(client, "run", client_params("fake", "", NULL)));
    json_decref(client_call(client, "run", client_params("fake", "", "{'company': 'globex'}")));
    request_sleep(client, 1, "acme");
    request_sleep(client, 2, "globex");
    AR_AUTO_JSON json_t *all = client_call(client, "top", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(all, "running")), 2);
    AR_AUTO_JSON json_t *some = client_call(other, "top", NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(some, "running")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(some, "recent")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(some, "more")), 0);
    ck_assert_ptr_null(strstr(client_last_line(other), "acme"));
    AR_AUTO_JSON json_t *error = client_fail(other, "top", client_json("{'company': 'acme'}"));
    client_expect_error(error, -32602, "/company", "unknown_member");
    cancel(client, 1);
    cancel(client, 2);
    client_disconnect(client);
    client_disconnect(other);
    daemon_free(daemon);
}
END_TEST

int main(void)
{
    static const TTest **const tests[] = {&test_what_runs_and_what_has_ended,
                                          &test_both_lists_are_bounded, &test_companies_of_others,
                                          NULL};
    return e2e_main("top", tests);
}

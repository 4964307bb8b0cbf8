/*
 * check_cli_client.c - the client against a peer that answers late, in pieces, wrongly or not at
 * all; and where the settings of the configuration file come from.
 *
 * The peer is the test itself: it listens on a socket of its own and writes before the client reads,
 * so nothing here depends on time.
 */
#include "cli/client.h"
#include "cli/config_file.h"
#include "tests/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static char folder[64];
static char path[96];
static int listener = -1;
static int peer = -1;
static struct client *client;

static void make_folder(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/check_cli_client.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/file", folder);
}

static void connect_both(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    make_folder();
    memcpy(address.sun_path, path, strlen(path));
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(client_open(path, client_deadline(10000), &client), 0);
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(peer, 0);
}

static void close_both(void)
{
    client_close(client);
    (void)close(peer);
    (void)close(listener);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void say(const char *text)
{
    ck_assert_int_eq(send(peer, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static int receive(struct client_answer *answer)
{
    *answer = (struct client_answer){0};
    return client_receive(client, client_deadline(10000), answer);
}

START_TEST(a_request_is_one_line)
{
    char line[256] = "";
    AR_AUTO_JSON json_t *params = json_object();
    ck_assert_int_eq(client_send(client, "7", RPC_METHOD_STATUS, params, client_deadline(10000)),
                     0);
    ssize_t got = recv(peer, line, sizeof(line) - 1, 0);
    ck_assert_int_gt(got, 0);
    ck_assert_int_eq(line[got - 1], '\n');
    AR_AUTO_JSON json_t *value = json_loads(line, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(value, "method")), "status");
    ck_assert_int_eq(json_integer_value(json_object_get(value, "id")), 7);
}
END_TEST

START_TEST(answers_come_with_their_ids)
{
    struct client_answer answer;
    say("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"a\":1}}\n{\"jsonrpc\":\"2.0\",\"id\":1,"
        "\"error\":{\"code\":-32602,\"message\":\"x\"}}\n");
    ck_assert_int_eq(receive(&answer), CLIENT_OK);
    ck_assert_str_eq(answer.id_text, "2");
    ck_assert_int_eq(json_integer_value(json_object_get(answer.result, "a")), 1);
    client_answer_free(&answer);
    ck_assert_int_eq(receive(&answer), CLIENT_OK);
    ck_assert_str_eq(answer.id_text, "1");
    ck_assert_ptr_null(answer.result);
    ck_assert_int_eq(json_integer_value(json_object_get(answer.error, "code")), -32602);
    client_answer_free(&answer);
}
END_TEST

START_TEST(notifications_are_skipped)
{
    struct client_answer answer;
    say("{\"jsonrpc\":\"2.0\",\"method\":\"output\",\"params\":{}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    ck_assert_int_eq(receive(&answer), CLIENT_OK);
    ck_assert_str_eq(answer.id_text, "1");
    client_answer_free(&answer);
}
END_TEST

START_TEST(what_is_no_answer_is_nonsense)
{
    static const char *const lines[] = {
        "hello\n",
        "[]\n",
        "{}\n",
        "{\"id\":1,\"result\":{}}\n",
        "{\"jsonrpc\":\"2.0\",\"result\":{}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1,\"a\":2}}\n",
    };
    for (size_t i = 0; i < AR_COUNT(lines); i++) {
        struct client_answer answer;
        say(lines[i]);
        ck_assert_msg(receive(&answer) == CLIENT_NONSENSE, "%s", lines[i]);
        ck_assert_ptr_null(answer.result);
        ck_assert_ptr_null(answer.error);
    }
}
END_TEST

START_TEST(an_end_before_the_answer_is_told)
{
    struct client_answer answer;
    say("{\"jsonrpc\":\"2.0\",\"id\":1,\"res");
    ck_assert_int_eq(shutdown(peer, SHUT_RDWR), 0);
    ck_assert_int_eq(receive(&answer), CLIENT_CLOSED);
}
END_TEST

START_TEST(the_deadline_ends_a_wait)
{
    struct client_answer answer = {0};
    ck_assert_int_eq(client_receive(client, client_deadline(0), &answer), CLIENT_LATE);
    ck_assert_int_eq(client_receive(client, client_deadline(20), &answer), CLIENT_LATE);
}
END_TEST

START_TEST(a_watched_descriptor_ends_a_wait)
{
    struct client_answer answer = {0};
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    client_watch(client, ends[0]);
    ck_assert_int_eq(client_receive(client, CLIENT_FOREVER, &answer), CLIENT_SIGNALED);
    client_watch(client, -1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(a_peer_that_reads_nothing_ends_a_send)
{
    AR_AUTO_JSON json_t *params = json_object();
    AR_AUTO_FREE char *large = calloc(1, (size_t)8 << 20);
    ck_assert_ptr_nonnull(large);
    memset(large, 'x', ((size_t)8 << 20) - 1);
    ck_assert_int_eq(json_object_set_new(params, "code", json_string(large)), 0);
    ck_assert_int_eq(client_send(client, "1", RPC_METHOD_RUN, params, client_deadline(20)),
                     CLIENT_LATE);
}
END_TEST

START_TEST(an_answer_before_the_end_of_a_send_is_kept)
{
    struct client_answer answer;
    AR_AUTO_JSON json_t *params = json_object();
    say("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"x\"}}\n");
    (void)close(peer);
    peer = -1;
    ck_assert_int_eq(client_send(client, "1", RPC_METHOD_STATUS, params, client_deadline(10000)),
                     0);
    ck_assert_int_eq(receive(&answer), CLIENT_OK);
    ck_assert_str_eq(answer.id_text, "null");
    client_answer_free(&answer);
}
END_TEST

START_TEST(nobody_there_is_an_error)
{
    struct client *none = NULL;
    char long_path[200];
    memset(long_path, 'x', sizeof(long_path) - 1);
    long_path[sizeof(long_path) - 1] = '\0';
    ck_assert_int_eq(client_open("/nonexistent/socket", client_deadline(10000), &none), -ENOENT);
    ck_assert_int_eq(client_open("", client_deadline(10000), &none), -ENOENT);
    ck_assert_int_eq(client_open(long_path, client_deadline(10000), &none), -ENAMETOOLONG);
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- configuration ------------------------------------------------------------------------------ */

static void write_config(const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void remove_folder(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(the_two_settings_are_found)
{
    struct config_file config;
    char message[CONFIG_FILE_MESSAGE_BYTES] = "";
    write_config("# a comment\n[daemon]\nlog_level = info\n[socket]\npath = /run/x.sock\n"
                 "[ledger]\nurl = postgres:host=/run/postgresql\n  dbname=audit\n[client local]\n"
                 "uid = 0\n");
    ck_assert_int_eq(config_file_read(path, &config, message), 0);
    ck_assert_str_eq(config.socket_path, "/run/x.sock");
    ck_assert_str_eq(config.ledger_url, "postgres:host=/run/postgresql dbname=audit");
    config_file_free(&config);
}
END_TEST

START_TEST(a_bad_file_names_its_line)
{
    static const char *const bad[] = {"[socket]\nnonsense\n", "[ledger]\nurl = a\nurl = b\n"};
    struct config_file config;
    char message[CONFIG_FILE_MESSAGE_BYTES];
    for (size_t i = 0; i < AR_COUNT(bad); i++) {
        char where[128];
        (void)snprintf(where, sizeof(where), "%s:%zu:", path, i + 2);
        write_config(bad[i]);
        ck_assert_int_eq(config_file_read(path, &config, message), 1);
        ck_assert_msg(strstr(message, where) != NULL, "%s", message);
    }
}
END_TEST

START_TEST(a_long_line_is_refused_and_not_cut)
{
    struct config_file config;
    char message[CONFIG_FILE_MESSAGE_BYTES], text[400] = "[ledger]\nurl = ";
    memset(text + strlen(text), 'x', 300);
    write_config(text);
    ck_assert_int_eq(config_file_read(path, &config, message), 1);
    ck_assert_ptr_null(config.ledger_url);
}
END_TEST

START_TEST(a_named_file_has_to_be_there)
{
    struct config_file config;
    char message[CONFIG_FILE_MESSAGE_BYTES];
    ck_assert_int_eq(config_file_read(path, &config, message), 1);
    ck_assert_int_eq(setenv("AUDITRUN_CONFIG", path, 1), 0);
    ck_assert_int_eq(config_file_read(NULL, &config, message), 1);
}
END_TEST

START_TEST(the_socket_is_looked_for_in_order)
{
    char message[CONFIG_FILE_MESSAGE_BYTES];
    char *found = NULL;
    write_config("[socket]\npath = /from/config\n");
    ck_assert_int_eq(setenv("AUDITRUN_SOCKET", "/from/environment", 1), 0);
    ck_assert_int_eq(config_file_socket("/from/option", path, &found, message), 0);
    ck_assert_str_eq(found, "/from/option");
    free(found);
    ck_assert_int_eq(config_file_socket(NULL, path, &found, message), 0);
    ck_assert_str_eq(found, "/from/environment");
    free(found);
    ck_assert_int_eq(unsetenv("AUDITRUN_SOCKET"), 0);
    ck_assert_int_eq(config_file_socket(NULL, path, &found, message), 0);
    ck_assert_str_eq(found, "/from/config");
    free(found);
    ck_assert_int_eq(config_file_ledger(NULL, path, &found, message), 1);
    ck_assert_int_eq(config_file_ledger("sqlite:/x", path, &found, message), 0);
    ck_assert_str_eq(found, "sqlite:/x");
    free(found);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_client");
    TCase *talk = tcase_create("talk");
    tcase_add_checked_fixture(talk, connect_both, close_both);
    tcase_add_test(talk, a_request_is_one_line);
    tcase_add_test(talk, answers_come_with_their_ids);
    tcase_add_test(talk, notifications_are_skipped);
    tcase_add_test(talk, what_is_no_answer_is_nonsense);
    tcase_add_test(talk, an_end_before_the_answer_is_told);
    tcase_add_test(talk, the_deadline_ends_a_wait);
    tcase_add_test(talk, a_watched_descriptor_ends_a_wait);
    tcase_add_test(talk, a_peer_that_reads_nothing_ends_a_send);
    tcase_add_test(talk, an_answer_before_the_end_of_a_send_is_kept);
    tcase_add_test(talk, nobody_there_is_an_error);
    suite_add_tcase(suite, talk);
    TCase *config = tcase_create("config");
    tcase_add_checked_fixture(config, make_folder, remove_folder);
    tcase_add_test(config, the_two_settings_are_found);
    tcase_add_test(config, a_bad_file_names_its_line);
    tcase_add_test(config, a_long_line_is_refused_and_not_cut);
    tcase_add_test(config, a_named_file_has_to_be_there);
    tcase_add_test(config, the_socket_is_looked_for_in_order);
    suite_add_tcase(suite, config);
    return suite_run(suite);
}

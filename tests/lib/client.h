/*
 * client.h - a client of the daemon for tests: lines out, lines in, any number in flight.
 *
 * Answers that come while another one is waited for are kept. Every wait has a deadline; a function
 * that returns nothing to be checked ends the test when it fails. Requests that are meant to be right
 * and every line of the daemon are kept for the schemas (traffic.h); lines that were made wrong on
 * purpose (client_send_line(), client_send_unchecked(), client_fail()) are not.
 */
#ifndef AUDITRUN_TESTS_LIB_CLIENT_H
#define AUDITRUN_TESTS_LIB_CLIENT_H

#include "protocol/json.h"

#define CLIENT_WAIT_MS 20000

struct client;

/* Connects to the socket. */
struct client *client_connect(const char *path);
/* Takes over a connected socket. */
struct client *client_adopt(int fd);
/* NULL is harmless. */
void client_disconnect(struct client *client);
int client_fd(const struct client *client);
/* Has sent all that it will send; still reads. */
void client_finish_sending(struct client *client);

/* Sends bytes as they are, or a line ('\n' is added). Reads meanwhile, so that it cannot block. */
void client_send_bytes(struct client *client, const void *bytes, size_t length);
void client_send_line(struct client *client, const char *line);
/* Sends a request: {"jsonrpc": "2.0", "id": id, "method": method, "params": params}. params is taken
 * over; NULL leaves it out. */
void client_request(struct client *client, json_int_t id, const char *method, json_t *params);
/* The same with whatever id text (JSON), NULL for a notification. */
void client_request_as(struct client *client, const char *id_text, const char *method,
                       json_t *params);
/* Sends a message, which is taken over: one that is valid, or one that may be anything. */
void client_send_json(struct client *client, json_t *message);
void client_send_unchecked(struct client *client, json_t *message);

/* The next message in the order in which they came: owned; NULL at the end of the connection, or when
 * none came within ms (client_has_ended() tells). */
json_t *client_next_within(struct client *client, int64_t ms);
json_t *client_next(struct client *client); /* must come, within CLIENT_WAIT_MS */
/* The raw text of the message that was handed out last; "" before. */
const char *client_last_line(const struct client *client);
/* Reads until the daemon closes; ends the test when it does not within CLIENT_WAIT_MS, or when it
 * sends anything more. */
void client_expect_end(struct client *client);
bool client_has_ended(const struct client *client);

/* The answer under this id, owned, whatever comes before it: the whole message. */
json_t *client_answer(struct client *client, json_int_t id);
json_t *client_answer_within(struct client *client, json_int_t id, int64_t ms); /* or NULL */
/* The result of the answer, which must be one. */
json_t *client_result(struct client *client, json_int_t id);
/* Sends and waits: the result; or the error object, which it must be. */
json_t *client_call(struct client *client, const char *method, json_t *params);
json_t *client_fail(struct client *client, const char *method, json_t *params);

/* Params of a run, owned: company acme, actor-1, purpose "case", code in the language, no grant. The
 * members of more (JSON with ' for ", NULL: none) are added, or replace those. */
json_t *client_params(const char *language, const char *code, const char *more);
/* JSON with ' for ", owned. */
json_t *client_json(const char *text);

/* Does the result have this status and reason? Ends the test with the whole result if not. */
void client_expect(const json_t *result, const char *status, const char *reason);
/* An error object: its code, and data.path and data.problem unless NULL. */
void client_expect_error(const json_t *error, int code, const char *path, const char *problem);

#endif

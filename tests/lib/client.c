/*
 * client.c - see client.h.
 *
 * The socket is non-blocking. What comes is cut into lines by protocol/frame.h and parsed at once;
 * messages wait in a list until somebody asks for them. Sending reads as well, so that a client with
 * much in flight and a daemon that stops reading never wait for each other.
 */
#include "tests/lib/client.h"

#include "protocol/frame.h"
#include "tests/lib/processes.h"
#include "tests/lib/traffic.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MAX_LINE      ((size_t)256 << 20)
#define FIRST_CALL_ID 1000000

struct message {
    json_t *value;
    char *line;
    TAILQ_ENTRY(message) in_client;
};

struct client {
    int fd;
    bool ended;
    struct frame_reader reader;
    TAILQ_HEAD(message_list, message) waiting;
    char *last_line;
    json_int_t next_call;
    json_t *methods; /* by the text of the id */
};

/* ---- traffic ---------------------------------------------------------------------------------- */

/* What was asked, so that the result can be held against the schema of its method. */
static void note_question(struct client *client, const json_t *message)
{
    const json_t *id = json_object_get(message, "id");
    AR_AUTO_FREE char *text = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
    if (text)
        ck_assert_int_eq(json_object_set(client->methods, text, json_object_get(message, "method")),
                         0);
}

static void keep_result(struct client *client, const json_t *message, const json_t *result)
{
    char schema[64];
    AR_AUTO_FREE char *id = json_dumps(json_object_get(message, "id"), JSON_ENCODE_ANY);
    const char *method = id ? json_string_value(json_object_get(client->methods, id)) : NULL;
    if (!method)
        return;
    (void)snprintf(schema, sizeof(schema), "%s-result", method);
    traffic_keep_value(schema, result);
}

static void keep_traffic(struct client *client, const json_t *message, const char *line)
{
    const json_t *result = json_object_get(message, "result");
    if (json_object_get(message, "method")) {
        traffic_keep("output-notification", line);
    } else if (result) {
        traffic_keep("result-line", line);
        keep_result(client, message, result);
    } else {
        traffic_keep("error-line", line);
    }
}

/* ---- connection ------------------------------------------------------------------------------- */

struct client *client_adopt(int fd)
{
    struct client *client = calloc(1, sizeof(*client));
    ck_assert_ptr_nonnull(client);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    *client = (struct client){.fd = fd, .next_call = FIRST_CALL_ID};
    frame_init(&client->reader, MAX_LINE);
    TAILQ_INIT(&client->waiting);
    client->methods = json_object();
    ck_assert_ptr_nonnull(client->methods);
    return client;
}

struct client *client_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_uint_lt(strlen(path), sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_msg(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0,
                  "cannot connect to %s: %s", path, strerror(errno));
    return client_adopt(fd);
}

void client_disconnect(struct client *client)
{
    struct message *message;
    if (!client)
        return;
    while ((message = TAILQ_FIRST(&client->waiting))) {
        TAILQ_REMOVE(&client->waiting, message, in_client);
        json_decref(message->value);
        free(message->line);
        free(message);
    }
    (void)close(client->fd);
    frame_free(&client->reader);
    json_decref(client->methods);
    free(client->last_line);
    free(client);
}

int client_fd(const struct client *client)
{
    return client->fd;
}

void client_finish_sending(struct client *client)
{
    ck_assert_int_eq(shutdown(client->fd, SHUT_WR), 0);
}

bool client_has_ended(const struct client *client)
{
    return client->ended;
}

const char *client_last_line(const struct client *client)
{
    return client->last_line ? client->last_line : "";
}

/* ---- in --------------------------------------------------------------------------------------- */

static void keep_message(struct client *client, const char *line, size_t length)
{
    struct message *message = calloc(1, sizeof(*message));
    json_error_t error;
    ck_assert_ptr_nonnull(message);
    message->value = json_loadb(line, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    ck_assert_msg(json_is_object(message->value), "the daemon sent no JSON object (%s): %.200s",
                  error.text, line);
    message->line = strndup(line, length);
    ck_assert_ptr_nonnull(message->line);
    keep_traffic(client, message->value, message->line);
    TAILQ_INSERT_TAIL(&client->waiting, message, in_client);
}

static void cut_lines(struct client *client)
{
    char *line;
    size_t length;
    enum frame_result result;
    while ((result = frame_next(&client->reader, &line, &length)) == FRAME_DONE)
        keep_message(client, line, length);
    ck_assert_int_eq(result, FRAME_MORE);
}

static void read_some(struct client *client)
{
    char *space;
    size_t available;
    ck_assert_int_eq(frame_space(&client->reader, &space, &available), 0);
    ssize_t n = read(client->fd, space, available);
    if (n > 0) {
        frame_commit(&client->reader, (size_t)n);
        cut_lines(client);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        client->ended = true;
    }
}

/* False when the time is over. */
static bool wait_for(struct client *client, short events, int64_t deadline)
{
    struct pollfd fd = {.fd = client->fd, .events = events};
    int64_t left = deadline - processes_now_ms();
    int ready = poll(&fd, 1, left > 0 ? (int)left : 0);
    if (ready > 0 && (fd.revents & (POLLIN | POLLHUP | POLLERR)))
        read_some(client);
    return ready > 0 || left > 0;
}

static json_t *take(struct client *client, struct message *message)
{
    json_t *value = message->value;
    TAILQ_REMOVE(&client->waiting, message, in_client);
    free(client->last_line);
    client->last_line = message->line;
    free(message);
    return value;
}

json_t *client_next_within(struct client *client, int64_t ms)
{
    int64_t deadline = processes_now_ms() + ms;
    while (TAILQ_EMPTY(&client->waiting) && !client->ended)
        if (!wait_for(client, POLLIN, deadline))
            return NULL;
    return TAILQ_EMPTY(&client->waiting) ? NULL : take(client, TAILQ_FIRST(&client->waiting));
}

json_t *client_next(struct client *client)
{
    json_t *value = client_next_within(client, CLIENT_WAIT_MS);
    ck_assert_msg(value != NULL, client->ended ? "the connection has ended" : "nothing has come");
    return value;
}

void client_expect_end(struct client *client)
{
    AR_AUTO_JSON json_t *more = client_next_within(client, CLIENT_WAIT_MS);
    ck_assert_msg(more == NULL, "instead of the end: %.200s", client_last_line(client));
    ck_assert_msg(client->ended, "the daemon keeps the connection open");
}

static bool answers(const struct message *message, json_int_t id)
{
    const json_t *given = json_object_get(message->value, "id");
    return json_is_integer(given) && json_integer_value(given) == id;
}

static struct message *find_answer(const struct client *client, json_int_t id)
{
    struct message *message = TAILQ_FIRST(&client->waiting);
    while (message && !answers(message, id))
        message = TAILQ_NEXT(message, in_client);
    return message;
}

json_t *client_answer_within(struct client *client, json_int_t id, int64_t ms)
{
    int64_t deadline = processes_now_ms() + ms;
    struct message *message;
    while (!(message = find_answer(client, id)))
        if (client->ended || !wait_for(client, POLLIN, deadline))
            return NULL;
    return take(client, message);
}

json_t *client_answer(struct client *client, json_int_t id)
{
    json_t *answer = client_answer_within(client, id, CLIENT_WAIT_MS);
    ck_assert_msg(answer != NULL, "no answer to request %lld%s", (long long)id,
                  client->ended ? ": the connection has ended" : "");
    return answer;
}

json_t *client_result(struct client *client, json_int_t id)
{
    AR_AUTO_JSON json_t *answer = client_answer(client, id);
    json_t *result = json_object_get(answer, "result");
    ck_assert_msg(result != NULL, "not a result: %.500s", client_last_line(client));
    return json_incref(result);
}

/* ---- out -------------------------------------------------------------------------------------- */

void client_send_bytes(struct client *client, const void *bytes, size_t length)
{
    int64_t deadline = processes_now_ms() + CLIENT_WAIT_MS;
    const char *rest = bytes;
    while (length > 0) {
        ssize_t n = send(client->fd, rest, length, MSG_NOSIGNAL);
        if (n > 0) {
            rest += n;
            length -= (size_t)n;
            continue;
        }
        ck_assert_msg(errno == EAGAIN || errno == EINTR, "cannot send: %s", strerror(errno));
        ck_assert_msg(wait_for(client, POLLIN | POLLOUT, deadline), "the daemon does not read");
    }
}

void client_send_line(struct client *client, const char *line)
{
    client_send_bytes(client, line, strlen(line));
    client_send_bytes(client, "\n", 1);
}

void client_send_json(struct client *client, json_t *message)
{
    traffic_keep_value("request-line", message);
    client_send_unchecked(client, message);
}

void client_send_unchecked(struct client *client, json_t *message)
{
    AR_AUTO_FREE char *line = json_dumps(message, JSON_COMPACT);
    ck_assert_ptr_nonnull(line);
    note_question(client, message);
    client_send_line(client, line);
    json_decref(message);
}

static json_t *request(const char *id_text, const char *method, json_t *params)
{
    json_t *message = json_pack("{s:s, s:s}", "jsonrpc", "2.0", "method", method);
    ck_assert_ptr_nonnull(message);
    if (id_text)
        ck_assert_int_eq(
            json_object_set_new(message, "id", json_loads(id_text, JSON_DECODE_ANY, NULL)), 0);
    if (params)
        ck_assert_int_eq(json_object_set_new(message, "params", params), 0);
    return message;
}

void client_request_as(struct client *client, const char *id_text, const char *method,
                       json_t *params)
{
    client_send_json(client, request(id_text, method, params));
}

void client_request(struct client *client, json_int_t id, const char *method, json_t *params)
{
    char id_text[32];
    (void)snprintf(id_text, sizeof(id_text), "%lld", (long long)id);
    client_request_as(client, id_text, method, params);
}

json_t *client_call(struct client *client, const char *method, json_t *params)
{
    json_int_t id = client->next_call++;
    client_request(client, id, method, params);
    return client_result(client, id);
}

json_t *client_fail(struct client *client, const char *method, json_t *params)
{
    json_int_t id = client->next_call++;
    char id_text[32];
    (void)snprintf(id_text, sizeof(id_text), "%lld", (long long)id);
    client_send_unchecked(client, request(id_text, method, params));
    AR_AUTO_JSON json_t *answer = client_answer(client, id);
    json_t *error = json_object_get(answer, "error");
    ck_assert_msg(error != NULL, "not an error: %.500s", client_last_line(client));
    return json_incref(error);
}

/* ---- messages --------------------------------------------------------------------------------- */

json_t *client_json(const char *text)
{
    AR_AUTO_FREE char *quoted = strdup(text);
    json_error_t error;
    ck_assert_ptr_nonnull(quoted);
    for (char *p = quoted; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *value = json_loads(quoted, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    ck_assert_msg(value != NULL, "%s in %s", error.text, quoted);
    return value;
}

json_t *client_params(const char *language, const char *code, const char *more)
{
    json_t *params =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:{}}", "company", "acme", "actor", "actor-1",
                  "purpose", "case", "language", language, "code", code, "grant");
    ck_assert_ptr_nonnull(params);
    if (more) {
        AR_AUTO_JSON json_t *members = client_json(more);
        ck_assert_int_eq(json_object_update(params, members), 0);
    }
    return params;
}

static const char *word(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

void client_expect(const json_t *result, const char *status, const char *reason)
{
    AR_AUTO_FREE char *text = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
    ck_assert_msg(strcmp(word(result, "status"), status) == 0 &&
                      strcmp(word(result, "reason"), reason) == 0,
                  "expected %s, %s, not %.2000s", status, reason, text ? text : "nothing");
}

void client_expect_error(const json_t *error, int code, const char *path, const char *problem)
{
    AR_AUTO_FREE char *text = json_dumps(error, JSON_COMPACT | JSON_ENCODE_ANY);
    const json_t *data = json_object_get(error, "data");
    ck_assert_msg(json_integer_value(json_object_get(error, "code")) == code &&
                      (!path || strcmp(word(data, "path"), path) == 0) &&
                      (!problem || strcmp(word(data, "problem"), problem) == 0),
                  "expected %d at %s (%s), not %.500s", code, path ? path : "any place",
                  problem ? problem : "any", text ? text : "nothing");
}

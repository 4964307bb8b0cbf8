/*
 * client.c - one connection to the daemon, from the caller's side.
 *
 * The socket is non-blocking; all waiting is in wait_for(). Framing is protocol/frame.h, so what
 * the daemon sends is bounded before it takes memory. Answers are checked for the outer form only;
 * what is in them is the verb's business.
 */
#include "cli/client.h"

#include "protocol/frame.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#define CONNECT_RETRY_MS 10 /* a full backlog of a Unix socket cannot be polled for */

struct client {
    int fd;
    int watched;
    struct frame_reader reader;
    client_notice_fn *notice; /* NULL: notifications are passed over */
    void *notice_context;
};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t client_deadline(int64_t ms)
{
    int64_t deadline = 0;
    if (ms == CLIENT_FOREVER || !base_add(now_ms(), ms, &deadline))
        return CLIENT_FOREVER;
    return deadline;
}

/* For poll(): what is left, at most an hour at once. */
static int left_ms(int64_t deadline)
{
    if (deadline == CLIENT_FOREVER)
        return 3600 * 1000;
    int64_t left = deadline - now_ms();
    return left < 0 ? 0 : left > 3600 * 1000 ? 3600 * 1000 : (int)left;
}

/* Until the socket is ready: CLIENT_OK, CLIENT_LATE, CLIENT_SIGNALED, -errno. */
static int wait_for(const struct client *client, short events, int64_t deadline)
{
    struct pollfd fds[] = {{.fd = client->fd, .events = events},
                           {.fd = client->watched, .events = POLLIN}};
    for (;;) {
        int left = left_ms(deadline);
        int ready = poll(fds, AR_COUNT(fds), left);
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready > 0 && fds[1].revents)
            return CLIENT_SIGNALED;
        if (ready > 0)
            return CLIENT_OK;
        if (ready == 0 && left_ms(deadline) == 0)
            return CLIENT_LATE;
    }
}

static int connect_until(int fd, const struct sockaddr_un *address, int64_t deadline)
{
    for (;;) {
        if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int left = left_ms(deadline);
        if (left == 0)
            return CLIENT_LATE;
        (void)poll(NULL, 0, left < CONNECT_RETRY_MS ? left : CONNECT_RETRY_MS);
    }
}

int client_open(const char *path, int64_t deadline, struct client **out)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof(address.sun_path))
        return length ? -ENAMETOOLONG : -ENOENT;
    memcpy(address.sun_path, path, length);
    AR_AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = connect_until(fd, &address, deadline);
    if (rc != 0)
        return rc;
    struct client *client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->fd = base_take_fd(&fd);
    client->watched = -1;
    frame_init(&client->reader, CLIENT_MAX_LINE);
    *out = client;
    return 0;
}

void client_close(struct client *client)
{
    if (!client)
        return;
    (void)close(client->fd);
    frame_free(&client->reader);
    free(client);
}

void client_listen(struct client *client, client_notice_fn *notice, void *context)
{
    client->notice = notice;
    client->notice_context = context;
}

void client_watch(struct client *client, int fd)
{
    client->watched = fd;
}

static int send_all(const struct client *client, const char *data, size_t length, int64_t deadline)
{
    while (length > 0) {
        ssize_t sent = send(client->fd, data, length, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            length -= (size_t)sent;
            continue;
        }
        if (errno == EPIPE || errno == ECONNRESET)
            return CLIENT_OK;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        int rc = wait_for(client, POLLOUT, deadline);
        if (rc != CLIENT_OK)
            return rc;
    }
    return CLIENT_OK;
}

int client_send(struct client *client, const char *id_text, enum rpc_method method,
                const json_t *params, int64_t deadline)
{
    size_t length = 0;
    AR_AUTO_FREE char *line = rpc_request_line(id_text, method, params, &length);
    if (!line)
        return -ENOMEM;
    return send_all(client, line, length, deadline);
}

/* Room is filled with what is there: CLIENT_OK, CLIENT_CLOSED, CLIENT_NONSENSE, or as wait_for(). */
static int fill(struct client *client, int64_t deadline)
{
    char *space = NULL;
    size_t available = 0;
    int rc = frame_space(&client->reader, &space, &available);
    if (rc != 0)
        return rc < 0 ? rc : CLIENT_NONSENSE;
    for (;;) {
        ssize_t got = recv(client->fd, space, available, 0);
        if (got > 0) {
            frame_commit(&client->reader, (size_t)got);
            return CLIENT_OK;
        }
        if (got == 0 || errno == ECONNRESET)
            return CLIENT_CLOSED;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        rc = wait_for(client, POLLIN, deadline);
        if (rc != CLIENT_OK)
            return rc;
    }
}

/* False: it is none. */
static bool take_notification(const struct client *client, const struct json_document *document)
{
    const json_t *method = json_object_get(document->root, "method");
    const char *word = json_string_value(method);
    if (word && client->notice && document->fault.problem == PROBLEM_NONE)
        client->notice(client->notice_context, word, json_object_get(document->root, "params"));
    return method != NULL;
}

/* The outer form of an answer: version, id, and exactly one of result and error. */
static bool is_answer(const struct json_document *document)
{
    const char *version = json_string_value(json_object_get(document->root, "jsonrpc"));
    const json_t *result = json_object_get(document->root, "result");
    const json_t *error = json_object_get(document->root, "error");
    if (!version || strcmp(version, "2.0") != 0 || document->id_text[0] == '\0')
        return false;
    return error ? !result && json_is_integer(json_object_get(error, "code")) : result != NULL;
}

/* CLIENT_OK with *answer set; CLIENT_NONSENSE; 100: nothing for us, go on; -ENOMEM. */
enum { SKIP = 100 };
static int take_line(const struct client *client, const char *line, size_t length,
                     struct client_answer *answer)
{
    struct json_document document;
    int rc = json_parse(line, length, &document);
    if (rc < 0)
        return rc;
    if (rc == JSON_BROKEN)
        return CLIENT_NONSENSE;
    rc = CLIENT_NONSENSE;
    if (take_notification(client, &document)) {
        rc = SKIP;
    } else if (document.fault.problem == PROBLEM_NONE && is_answer(&document)) {
        *answer =
            (struct client_answer){.result = json_incref(json_object_get(document.root, "result")),
                                   .error = json_incref(json_object_get(document.root, "error"))};
        memcpy(answer->id_text, document.id_text, sizeof(answer->id_text));
        rc = CLIENT_OK;
    }
    json_document_free(&document);
    return rc;
}

int client_receive(struct client *client, int64_t deadline, struct client_answer *answer)
{
    for (;;) {
        char *line = NULL;
        size_t length = 0;
        int rc = CLIENT_OK;
        switch (frame_next(&client->reader, &line, &length)) {
        case FRAME_DONE:
            rc = take_line(client, line, length, answer);
            if (rc != SKIP)
                return rc;
            break;
        case FRAME_MORE:
            rc = fill(client, deadline);
            if (rc != CLIENT_OK)
                return rc;
            break;
        case FRAME_BAD:
            return CLIENT_NONSENSE;
        }
    }
}

void client_answer_free(struct client_answer *answer)
{
    json_decref(answer->result);
    json_decref(answer->error);
    *answer = (struct client_answer){0};
}

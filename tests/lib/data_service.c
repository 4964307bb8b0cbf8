/*
 * data_service.c - the host service of the tests.
 *
 * Each connection has a thread that reads a line, answers, and reads the next. What cannot be written
 * ends the connection: the other side is the one that is tested.
 */
#include "tests/lib/data_service.h"

#include "protocol/frame.h"
#include "protocol/json.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

struct connection {
    int fd;
    json_t *later; /* an answer that waits for the next call */
};

static bool send_text(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, text, length, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

/* Takes the value, and writes it in pieces of so many bytes (0: at once). */
static bool send_json(int fd, json_t *value, size_t piece)
{
    AR_AUTO_FREE char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (!text)
        return false;
    size_t length = strlen(text) + 1, at = 0;
    text[length - 1] = '\n';
    while (at < length) {
        size_t n = piece > 0 && piece < length - at ? piece : length - at;
        if (!send_text(fd, text + at, n))
            return false;
        at += n;
    }
    return true;
}

static json_t *result_of(const json_t *id, json_t *result)
{
    return json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "result", result);
}

static json_t *echo(const json_t *params)
{
    return json_pack("{s:O, s:O}", "context", json_object_get(params, "context"), "params",
                     json_object_get(params, "params"));
}

static json_t *invoices(const json_t *params)
{
    return json_pack("{s:O, s:[{s:s, s:i}, {s:s, s:i}]}", "company",
                     json_object_get(json_object_get(params, "context"), "company"), "invoices",
                     "number", "2026-001", "total", 1200, "number", "2026-002", "total", 80);
}

static json_t *big(const json_t *params)
{
    json_int_t bytes =
        json_integer_value(json_object_get(json_object_get(params, "params"), "bytes"));
    AR_AUTO_FREE char *text = malloc((size_t)bytes + 1);
    if (!text)
        return NULL;
    memset(text, 'x', (size_t)bytes);
    return json_pack("{s:s%}", "text", text, (size_t)bytes);
}

/* Answers that are none, with the id where %lld is. */
static const struct {
    const char *method, *text;
} bad_answers[] = {
    {"rubbish", "HTTP/1.1 200 OK\n"},
    {"list", "[1, 2]\n"},
    {"no_message", "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":1}}\n"},
    {"both",
     "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":1,\"error\":{\"code\":1,\"message\":\"\"}}\n"},
    {"neither", "{\"jsonrpc\":\"2.0\",\"id\":%lld}\n"},
    {"wrong_id", "{\"jsonrpc\":\"2.0\",\"id\":1%lld,\"result\":1}\n"},
    {"unasked", "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":1,\"more\":2}\n"},
    {"repeated", "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":1,\"result\":2}\n"},
    {"half", "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"resu"},
    {"die", ""},
};

static bool send_bad(int fd, const char *method, json_int_t id)
{
    char text[128];
    for (size_t i = 0; i < AR_COUNT(bad_answers); i++) {
        if (strcmp(bad_answers[i].method, method) != 0)
            continue;
        const char *form = bad_answers[i].text, *place = strstr(form, "%lld");
        int length = place ? snprintf(text, sizeof text, "%.*s%lld%s", (int)(place - form), form,
                                      (long long)id, place + 4)
                           : snprintf(text, sizeof text, "%s", form);
        return send_text(fd, text, (size_t)length) && strchr(text, '\n');
    }
    return send_json(fd,
                     json_pack("{s:s, s:I, s:{s:i, s:s}}", "jsonrpc", "2.0", "id", id, "error",
                               "code", -32601, "message", "the service has no such method"),
                     0);
}

/* False: the connection is to end. */
static bool answer(struct connection *connection, const json_t *call)
{
    const char *method = json_string_value(json_object_get(call, "method"));
    const json_t *id = json_object_get(call, "id"), *params = json_object_get(call, "params");
    int fd = connection->fd;
    if (!method)
        return false;
    if (strcmp(method, "hang") == 0)
        return true;
    if (strcmp(method, "later") == 0) {
        json_decref(connection->later);
        connection->later = result_of(id, echo(params));
        return true;
    }
    if (strcmp(method, "invoices.read") == 0)
        return send_json(fd, result_of(id, invoices(params)), 0);
    if (strcmp(method, "echo") == 0 || strcmp(method, "slow") == 0)
        return send_json(fd, result_of(id, echo(params)), method[0] == 's' ? 1 : 0);
    if (strcmp(method, "too_big") == 0)
        return send_json(fd, result_of(id, big(params)), 0);
    if (strcmp(method, "fail") == 0)
        return send_json(fd,
                         json_pack("{s:s, s:O, s:{s:i, s:s, s:{s:s}}}", "jsonrpc", "2.0", "id", id,
                                   "error", "code", 4711, "message", "no such invoice", "data",
                                   "number", "2026-003"),
                         0);
    return send_bad(fd, method, json_integer_value(id));
}

static bool serve_line(struct connection *connection, const char *line, size_t length)
{
    json_error_t error;
    AR_AUTO_JSON json_t *call = json_loadb(line, length, JSON_ALLOW_NUL, &error);
    json_t *later = connection->later;
    connection->later = NULL;
    bool goes_on = call && answer(connection, call);
    if (later && !send_json(connection->fd, later, 0))
        goes_on = false;
    return goes_on;
}

static void *serve_connection(void *argument)
{
    struct connection connection = {.fd = *(int *)argument};
    struct frame_reader reader;
    bool goes_on = true;
    char *space, *line;
    size_t available, length;
    free(argument);
    frame_init(&reader, 64u << 20);
    while (goes_on && frame_space(&reader, &space, &available) == 0) {
        ssize_t n = read(connection.fd, space, available);
        if (n <= 0)
            break;
        frame_commit(&reader, (size_t)n);
        while (goes_on && frame_next(&reader, &line, &length) == FRAME_DONE)
            goes_on = serve_line(&connection, line, length);
    }
    frame_free(&reader);
    json_decref(connection.later);
    (void)close(connection.fd);
    return NULL;
}

int data_service_listen(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, SOMAXCONN) < 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

_Noreturn void data_service_serve(int listener)
{
    pthread_attr_t detached;
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t thread;
        int *fd = malloc(sizeof *fd);
        if (!fd)
            _exit(EXIT_FAILURE);
        *fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (*fd < 0 || pthread_create(&thread, &detached, serve_connection, fd) != 0) {
            if (*fd >= 0)
                (void)close(*fd);
            free(fd);
        }
    }
}

bool data_service_start(struct data_service *service, const char *path)
{
    *service = (struct data_service){0};
    int listener = data_service_listen(path);
    if (listener < 0) {
        perror("data_service: listen");
        return false;
    }
    pid_t parent = getpid();
    (void)snprintf(service->path, sizeof service->path, "%s", path);
    service->pid = fork();
    if (service->pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(EXIT_FAILURE);
        data_service_serve(listener);
    }
    (void)close(listener);
    if (service->pid < 0)
        perror("data_service: fork");
    return service->pid > 0;
}

void data_service_stop(struct data_service *service)
{
    if (service->pid > 0) {
        (void)kill(service->pid, SIGKILL);
        (void)waitpid(service->pid, NULL, 0);
    }
    if (service->path[0])
        (void)unlink(service->path);
    *service = (struct data_service){0};
}

/*
 * dataport_service.c - a connection that comes and goes.
 *
 * A Unix socket is connected at once or not at all, save that the service's queue is full (EAGAIN):
 * that is tried again until somebody drops the connection, for calls have deadlines. Nothing here
 * waits.
 *
 * What is read is bounded by the longest answer, what is to be written by the calls that are allowed
 * to be on their way. After each callback the connection may be gone: fd tells.
 */
#include "daemon/dataport_service.h"

#include "daemon/deadline.h"
#include "protocol/frame.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define READ_BYTES 65536 /* in one turn */
#define RETRY_MS   10

struct dataport_service {
    struct event_base *base;
    const struct config_data_port *config;
    const struct dataport_service_events *events;
    void *context;
    int fd; /* -1: there is no connection */
    struct event *readable, *writable;
    struct evbuffer *output;
    struct frame_reader reader;
    struct deadline retry;  /* connecting again */
    struct deadline resume; /* lines that were at hand when it was paused */
    bool connected, paused;
};

void dataport_service_drop(struct dataport_service *service)
{
    deadline_stop(&service->retry);
    deadline_stop(&service->resume);
    if (service->readable)
        event_free(service->readable);
    if (service->writable)
        event_free(service->writable);
    service->readable = service->writable = NULL;
    if (service->fd >= 0)
        (void)close(service->fd);
    service->fd = -1;
    service->connected = false;
    frame_free(&service->reader);
    (void)evbuffer_drain(service->output, evbuffer_get_length(service->output));
}

static void lose(struct dataport_service *service, bool too_big)
{
    dataport_service_drop(service);
    service->events->gone(service->context, too_big);
}

/* ---- in ----------------------------------------------------------------------------------------- */

static void serve_lines(struct dataport_service *service)
{
    while (service->fd >= 0 && !service->paused) {
        char *line;
        size_t length;
        enum frame_result result = frame_next(&service->reader, &line, &length);
        if (result == FRAME_BAD)
            lose(service, true);
        if (result != FRAME_DONE)
            return;
        service->events->line(service->context, line, length);
    }
}

static void resume_lines(void *context)
{
    serve_lines(context);
}

static void read_some(evutil_socket_t fd, short what, void *context)
{
    struct dataport_service *service = context;
    char *space;
    size_t available;
    (void)what;
    int rc = frame_space(&service->reader, &space, &available);
    if (rc != 0) {
        lose(service, rc > 0);
        return;
    }
    ssize_t n = read(fd, space, available < READ_BYTES ? available : READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lose(service, false);
        return;
    }
    frame_commit(&service->reader, (size_t)n);
    serve_lines(service);
}

void dataport_service_pause(struct dataport_service *service, bool paused)
{
    if (service->paused == paused)
        return;
    service->paused = paused;
    if (service->fd < 0 || !service->connected)
        return;
    if (paused) {
        (void)event_del(service->readable);
        deadline_stop(&service->resume);
    } else {
        (void)event_add(service->readable, NULL);
        deadline_start(&service->resume, 0);
    }
}

/* ---- out ---------------------------------------------------------------------------------------- */

static void write_some(evutil_socket_t fd, short what, void *context)
{
    struct dataport_service *service = context;
    (void)what;
    if (evbuffer_write(service->output, fd) < 0 && errno != EAGAIN && errno != EINTR) {
        lose(service, false);
        return;
    }
    if (evbuffer_get_length(service->output) == 0)
        (void)event_del(service->writable);
}

static void free_line(const void *data, size_t length, void *line)
{
    (void)data;
    (void)length;
    free(line);
}

/* ---- connecting --------------------------------------------------------------------------------- */

static int try_to_connect(struct dataport_service *service)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = service->config->socket;
    if (!path || strlen(path) >= sizeof address.sun_path)
        return 1;
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(service->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (errno != EAGAIN)
            return 1;
        deadline_start(&service->retry, RETRY_MS);
        return 0;
    }
    service->connected = true;
    if ((!service->paused && event_add(service->readable, NULL) != 0) ||
        event_add(service->writable, NULL) != 0)
        return -ENOMEM;
    return 0;
}

static void retry(void *context)
{
    struct dataport_service *service = context;
    if (try_to_connect(service) != 0)
        lose(service, false);
}

static int start(struct dataport_service *service)
{
    service->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (service->fd < 0)
        return -errno;
    frame_init(&service->reader, (size_t)service->config->max_answer_bytes);
    service->readable =
        event_new(service->base, service->fd, EV_READ | EV_PERSIST, read_some, service);
    service->writable =
        event_new(service->base, service->fd, EV_WRITE | EV_PERSIST, write_some, service);
    if (!service->readable || !service->writable)
        return -ENOMEM;
    return try_to_connect(service);
}

int dataport_service_send(struct dataport_service *service, char *line, size_t length)
{
    if (!line || evbuffer_add_reference(service->output, line, length, free_line, line) != 0) {
        free(line);
        return -ENOMEM;
    }
    int rc = 0;
    if (service->fd < 0)
        rc = start(service);
    else if (service->connected && event_add(service->writable, NULL) != 0)
        rc = -ENOMEM;
    if (rc != 0)
        dataport_service_drop(service);
    return rc;
}

int dataport_service_new(struct event_base *base, const struct config_data_port *config,
                         const struct dataport_service_events *events, void *context,
                         struct dataport_service **out)
{
    struct dataport_service *service = calloc(1, sizeof *service);
    if (!service)
        return -ENOMEM;
    *service = (struct dataport_service){
        .base = base, .config = config, .events = events, .context = context, .fd = -1};
    service->output = evbuffer_new();
    int rc = service->output ? deadline_init(&service->retry, base, retry, service) : -ENOMEM;
    if (rc == 0)
        rc = deadline_init(&service->resume, base, resume_lines, service);
    if (rc == 0) {
        *out = service;
    } else {
        dataport_service_free(service);
    }
    return rc;
}

void dataport_service_free(struct dataport_service *service)
{
    if (!service)
        return;
    if (service->output) {
        dataport_service_drop(service);
        evbuffer_free(service->output);
    }
    deadline_free(&service->retry);
    deadline_free(&service->resume);
    free(service);
}

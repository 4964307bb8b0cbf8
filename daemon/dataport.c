/*
 * dataport.c - the code's side of the data port.
 *
 * Each line of the code gets one answer: from the service when its method is granted and it is within
 * the bounds, from here when not. A call that is on its way has a number of the daemon's own and a
 * deadline; the service's connection (dataport_service.c) is dropped when it breaks either, for what
 * comes over it afterwards could be anything, and made anew for the next call.
 *
 * Bounds: a line has a maximum (the rest of a longer one is skipped), calls on their way too, calls in a
 * second too. Code whose answers pile up is not read from, nor is the service; and code is not read
 * faster than its pace, whatever it sends, since each line costs the loop time. Memory is bounded by
 * that. Descriptors that code sends along are dropped by the kernel: they are not asked for.
 */
#include "daemon/dataport.h"

#include "daemon/clock.h"
#include "daemon/dataport_call.h"
#include "daemon/dataport_service.h"
#include "daemon/deadline.h"
#include "protocol/frame.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

#ifndef SO_PASSRIGHTS /* Linux 6.16; socket(7) */
#    define SO_PASSRIGHTS 83
#endif
#define READ_BYTES   65536 /* in one turn */
#define TURN_LINES   32
#define OUTPUT_PAUSE (256u << 10) /* nobody is read over this much that the code has not read */
#define PACE_LINES   1000         /* of any kind in a second, beside the calls that may be */
#define PACE_BYTES   4096         /* so many bytes of a line count as another one */

/* Tokens that come back with time; a million is one. */
struct bucket {
    int64_t rate; /* tokens in a second, and the most that there are */
    int64_t millionths;
    int64_t filled_us;
};

/* A call that is on its way. */
struct pending {
    TAILQ_ENTRY(pending) entry;
    struct dataport *port;
    int64_t number;
    char id_text[JSON_ID_TEXT_BYTES];
    struct deadline deadline;
};

struct dataport {
    const struct config_data_port *config;
    const struct text_list *methods;
    struct event_base *base;
    char *context; /* JSON */
    int fd;        /* our end; -1 once the code has gone */
    struct event *readable, *writable;
    struct deadline resume; /* lines at hand, or the pace */
    struct frame_reader reader;
    struct evbuffer *output;
    struct dataport_service *service;
    TAILQ_HEAD(pending_list, pending) pending;
    int64_t pending_count, last_number;
    struct bucket rate, pace;
    struct usage_data_api usage;
    bool skipping;    /* the rest of a line that was too long */
    bool input_ended; /* no more calls will come */
    bool unserved;    /* lines may be at hand */
};

/* ---- buckets ------------------------------------------------------------------------------------ */

static struct bucket bucket_full(int64_t rate)
{
    return (struct bucket){rate, rate * 1000000, clock_monotonic_us()};
}

static void bucket_fill(struct bucket *bucket)
{
    int64_t now = clock_monotonic_us();
    int64_t passed = now - bucket->filled_us < 1000000 ? now - bucket->filled_us : 1000000;
    bucket->filled_us = now;
    bucket->millionths += passed * bucket->rate;
    if (bucket->millionths > bucket->rate * 1000000)
        bucket->millionths = bucket->rate * 1000000;
}

static bool bucket_take(struct bucket *bucket)
{
    bucket_fill(bucket);
    if (bucket->millionths < 1000000)
        return false;
    bucket->millionths -= 1000000;
    return true;
}

/* ---- the flow ----------------------------------------------------------------------------------- */

static bool has_room(const struct dataport *port)
{
    return evbuffer_get_length(port->output) < OUTPUT_PAUSE;
}

static bool wants_input(const struct dataport *port)
{
    return port->fd >= 0 && !port->input_ended && has_room(port) && port->pace.millionths > 0;
}

static void abandon(struct pending *pending)
{
    struct dataport *port = pending->port;
    TAILQ_REMOVE(&port->pending, pending, entry);
    port->pending_count--;
    deadline_free(&pending->deadline);
    free(pending);
}

/* The code's end is closed, or of no more use: nothing is owed any more. */
static void leave(struct dataport *port)
{
    struct pending *pending;
    while ((pending = TAILQ_FIRST(&port->pending)))
        abandon(pending);
    dataport_service_drop(port->service);
    deadline_stop(&port->resume);
    (void)event_del(port->readable);
    (void)event_del(port->writable);
    (void)close(port->fd);
    port->fd = -1;
    frame_free(&port->reader);
    (void)evbuffer_drain(port->output, evbuffer_get_length(port->output));
}

/* Reading follows wants_input(), the service's what the code has taken. */
static void update_reading(struct dataport *port)
{
    if (port->fd < 0)
        return;
    bool reading = event_pending(port->readable, EV_READ, NULL) != 0;
    if (wants_input(port) && !reading) {
        if (event_add(port->readable, NULL) != 0) {
            leave(port);
            return;
        }
        if (port->unserved)
            deadline_start(&port->resume, 0);
    } else if (!wants_input(port) && reading) {
        (void)event_del(port->readable);
    }
    if (port->pace.millionths <= 0 && !deadline_is_running(&port->resume))
        deadline_start(&port->resume, 1 - port->pace.millionths / (port->pace.rate * 1000));
    dataport_service_pause(port->service, !has_room(port));
}

static void free_line(const void *data, size_t length, void *line)
{
    (void)data;
    (void)length;
    free(line);
}

/* Gives the code a line, which is taken; without memory for it the code is left. */
static void answer_code(struct dataport *port, char *line, size_t length)
{
    if (port->fd < 0) {
        free(line);
        return;
    }
    if (!line || evbuffer_add_reference(port->output, line, length, free_line, line) != 0) {
        free(line);
        leave(port);
        return;
    }
    if (event_add(port->writable, NULL) != 0)
        leave(port);
}

static void refuse(struct dataport *port, enum dataport_error error, const char *id_text)
{
    size_t length = 0;
    char *line = dataport_error_line(error, id_text, &length);
    answer_code(port, line, length);
}

/* Code that has sent all and is owed nothing is done; it may have closed only one direction. */
static void leave_if_served(struct dataport *port)
{
    struct pollfd fd = {.fd = port->fd};
    if (port->fd < 0 || !port->input_ended || port->unserved)
        return;
    bool gone = poll(&fd, 1, 0) == 1 && (fd.revents & (POLLHUP | POLLERR));
    if (gone || (TAILQ_EMPTY(&port->pending) && evbuffer_get_length(port->output) == 0))
        leave(port);
}

static void write_some(evutil_socket_t fd, short what, void *context)
{
    struct dataport *port = context;
    (void)what;
    int n = evbuffer_write(port->output, fd);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        leave(port);
        return;
    }
    port->usage.bytes_in += n > 0 ? n : 0;
    if (evbuffer_get_length(port->output) == 0)
        (void)event_del(port->writable);
    update_reading(port);
    leave_if_served(port);
}

/* ---- calls on their way ------------------------------------------------------------------------- */

static void fail_call(struct pending *pending, enum dataport_error error)
{
    struct dataport *port = pending->port;
    char id_text[JSON_ID_TEXT_BYTES];
    memcpy(id_text, pending->id_text, sizeof id_text);
    abandon(pending);
    refuse(port, error, id_text);
}

/* The connection has gone: so have the calls that went over it. */
static void fail_all(struct dataport *port, enum dataport_error error)
{
    struct pending *pending;
    while ((pending = TAILQ_FIRST(&port->pending)))
        fail_call(pending, error);
}

static void call_timed_out(void *context)
{
    struct pending *pending = context;
    struct dataport *port = pending->port;
    dataport_service_drop(port->service);
    fail_call(pending, DATAPORT_TIMEOUT);
    fail_all(port, DATAPORT_UNAVAILABLE);
    update_reading(port);
}

static int forward(struct dataport *port, const struct dataport_call *call)
{
    struct pending *pending = calloc(1, sizeof *pending);
    if (!pending)
        return -ENOMEM;
    pending->port = port;
    pending->number = ++port->last_number;
    memcpy(pending->id_text, call->id_text, sizeof pending->id_text);
    TAILQ_INSERT_TAIL(&port->pending, pending, entry);
    port->pending_count++;
    int rc = deadline_init(&pending->deadline, port->base, call_timed_out, pending);
    if (rc < 0)
        return rc;
    deadline_start(&pending->deadline, port->config->timeout_ms);
    size_t length = 0;
    char *line = dataport_call_line(call, pending->number, port->context, &length);
    rc = dataport_service_send(port->service, line, length);
    if (rc == 0)
        port->usage.calls++;
    else
        fail_all(port, DATAPORT_UNAVAILABLE);
    return 0;
}

static struct pending *find_pending(struct dataport *port, const struct dataport_answer *answer)
{
    struct pending *pending;
    TAILQ_FOREACH(pending, &port->pending, entry)
        if (answer->known_number && pending->number == answer->number)
            return pending;
    return NULL;
}

/* Whose answer it should be is told it was a bad one; when nobody knows, all are. */
static void bad_answer(struct dataport *port, struct pending *pending)
{
    dataport_service_drop(port->service);
    if (!pending)
        fail_all(port, DATAPORT_BAD_ANSWER);
    else
        fail_call(pending, DATAPORT_BAD_ANSWER);
    fail_all(port, DATAPORT_UNAVAILABLE);
}

static void service_answered(void *context, const char *line, size_t length)
{
    struct dataport *port = context;
    struct dataport_answer answer;
    int rc = dataport_answer_parse(line, length, &answer);
    struct pending *pending = find_pending(port, &answer);
    if (rc != 0 || !pending) {
        bad_answer(port, pending);
    } else {
        size_t bytes = 0;
        char *text = dataport_answer_line(&answer, pending->id_text, &bytes);
        abandon(pending);
        answer_code(port, text, bytes);
    }
    update_reading(port);
}

static void service_gone(void *context, bool too_big)
{
    struct dataport *port = context;
    fail_all(port, too_big ? DATAPORT_BAD_ANSWER : DATAPORT_UNAVAILABLE);
    update_reading(port);
}

/* ---- the code's lines --------------------------------------------------------------------------- */

static int serve_call(struct dataport *port, const struct dataport_call *call)
{
    if (!call->id_text[0])
        return 0; /* nobody waits for what comes of a notification */
    if (!dataport_call_is_granted(call, port->methods)) {
        port->usage.denials++;
        refuse(port, DATAPORT_NOT_GRANTED, call->id_text);
    } else if (port->pending_count >= port->config->max_pending) {
        refuse(port, DATAPORT_TOO_MANY, call->id_text);
    } else if (!bucket_take(&port->rate)) {
        refuse(port, DATAPORT_RATE_LIMITED, call->id_text);
    } else {
        return forward(port, call);
    }
    return 0;
}

static void serve_line(struct dataport *port, const char *line, size_t length)
{
    struct dataport_call call;
    enum dataport_error error;
    bucket_fill(&port->pace);
    port->pace.millionths -= (int64_t)(1 + length / PACE_BYTES) * 1000000;
    int rc = dataport_call_parse(line, length, &call, &error);
    if (rc > 0)
        refuse(port, error, "null");
    else if (serve_call(port, &call) < 0)
        leave(port);
}

/* The next line at hand. False when there is none, or none is wanted now. */
static bool serve_next(struct dataport *port)
{
    char *line;
    size_t length;
    if (port->fd < 0 || !has_room(port) || port->pace.millionths <= 0)
        return false;
    switch (frame_next(&port->reader, &line, &length)) {
    case FRAME_DONE:
        serve_line(port, line, length);
        return true;
    case FRAME_BAD:
        frame_free(&port->reader);
        port->skipping = true;
        refuse(port, DATAPORT_TOO_BIG, "null");
        return false;
    default:
        port->unserved = false;
        return false;
    }
}

static void serve_lines(struct dataport *port)
{
    int served = 0;
    port->unserved = true;
    while (served < TURN_LINES && serve_next(port))
        served++;
    if (port->fd >= 0 && served == TURN_LINES)
        deadline_start(&port->resume, 0);
    update_reading(port);
    leave_if_served(port);
}

static void resume_serving(void *context)
{
    struct dataport *port = context;
    bucket_fill(&port->pace);
    serve_lines(port);
}

/* Of what has just come, what belongs to a line that was too long is dropped. */
static size_t skip(struct dataport *port, char *bytes, size_t length)
{
    const char *end = port->skipping ? memchr(bytes, '\n', length) : NULL;
    if (!port->skipping)
        return length;
    if (!end)
        return 0;
    port->skipping = false;
    length -= (size_t)(end + 1 - bytes);
    memmove(bytes, end + 1, length);
    return length;
}

static void read_some(evutil_socket_t fd, short what, void *context)
{
    struct dataport *port = context;
    char *space;
    size_t available;
    (void)what;
    int rc = frame_space(&port->reader, &space, &available);
    if (rc > 0) {
        serve_lines(port);
        return;
    }
    ssize_t n = rc < 0 ? -1 : read(fd, space, available < READ_BYTES ? available : READ_BYTES);
    if (n < 0 && rc == 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        leave(port);
        return;
    }
    port->usage.bytes_out += n;
    port->input_ended = n == 0;
    frame_commit(&port->reader, skip(port, space, (size_t)n));
    serve_lines(port);
}

/* ---- opening ------------------------------------------------------------------------------------ */

static int make_socket(struct dataport *port, int *code_end)
{
    static const int none = 0;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    port->fd = ends[0];
    *code_end = ends[1];
    /* Nobody shall wait for us to let go of what the code sends along, where the kernel can refuse it. */
    (void)setsockopt(port->fd, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof none);
    /* Only our end: the code may well read and write without a loop. */
    return fcntl(port->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_parts(struct dataport *port, const struct dataport_start *start)
{
    static const struct dataport_service_events events = {service_answered, service_gone};
    AR_AUTO_JSON json_t *context =
        json_pack("{s:s, s:s, s:s, s:s}", "company", start->company, "actor", start->actor,
                  "purpose", start->purpose, "run_id", start->run_id);
    port->context = context ? json_dumps(context, JSON_COMPACT) : NULL;
    port->output = evbuffer_new();
    port->readable = event_new(start->base, port->fd, EV_READ | EV_PERSIST, read_some, port);
    port->writable = event_new(start->base, port->fd, EV_WRITE | EV_PERSIST, write_some, port);
    if (!port->context || !port->output || !port->readable || !port->writable ||
        event_add(port->readable, NULL) != 0)
        return -ENOMEM;
    int rc = deadline_init(&port->resume, start->base, resume_serving, port);
    return rc < 0 ? rc
                  : dataport_service_new(start->base, start->config, &events, port, &port->service);
}

int dataport_open(const struct dataport_start *start, struct dataport **out, int *code_end)
{
    struct dataport *port = calloc(1, sizeof *port);
    AR_AUTO_CLOSE int end = -1;
    if (!port)
        return -ENOMEM;
    *port = (struct dataport){.config = start->config,
                              .methods = start->methods,
                              .base = start->base,
                              .fd = -1,
                              .rate = bucket_full(start->config->max_rate),
                              .pace = bucket_full(start->config->max_rate + PACE_LINES)};
    TAILQ_INIT(&port->pending);
    frame_init(&port->reader, (size_t)start->config->max_request_bytes);
    int rc = make_socket(port, &end);
    if (rc == 0)
        rc = make_parts(port, start);
    if (rc < 0) {
        dataport_free(port);
        return rc;
    }
    *out = port;
    *code_end = base_take_fd(&end);
    return 0;
}

void dataport_usage(const struct dataport *dataport, struct usage_data_api *out)
{
    *out = dataport->usage;
}

void dataport_free(struct dataport *dataport)
{
    struct pending *pending;
    if (!dataport)
        return;
    while ((pending = TAILQ_FIRST(&dataport->pending)))
        abandon(pending);
    dataport_service_free(dataport->service);
    deadline_free(&dataport->resume);
    if (dataport->readable)
        event_free(dataport->readable);
    if (dataport->writable)
        event_free(dataport->writable);
    if (dataport->output)
        evbuffer_free(dataport->output);
    if (dataport->fd >= 0)
        (void)close(dataport->fd);
    frame_free(&dataport->reader);
    free(dataport->context);
    free(dataport);
}

/*
 * session.c - one connection of a client.
 *
 * Bytes come in through a frame reader, lines go to methods.c one after the other. Output is
 * gathered in a buffer and written when the socket takes it. Both directions are bounded: see
 * wants_input() for when a session stops reading, and stalled() for who is cut off. The half-closed
 * connection of a client that has sent all it had (nc -N) is served to its end.
 *
 * A closed session is taken out of everything at once, and freed at the end of the loop's turn.
 */
#include "daemon/session.h"

#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/fault.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/methods.h"
#include "daemon/run.h"
#include "protocol/frame.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <poll.h>
#include <string.h>

#define SESSION_OUTPUT_PAUSE (1u << 20)   /* stop reading over this much unread output */
#define SESSION_OUTPUT_LIMIT (256u << 20) /* cut off over this much, whatever was in flight */
#define SESSION_READ_BYTES   65536        /* in one turn, so that one client cannot hold the loop */
#define SESSION_TURN_LINES   64

struct session {
    struct listener *listener;
    struct line *line;
    int fd;
    struct peer_client client;
    struct frame_reader reader;
    struct evbuffer *output;
    struct event *readable, *writable;
    struct deadline
        resume; /* in the next turn: what is active in this one would hold up the others */
    struct deadline stall;
    TAILQ_HEAD(pending_list, pending) pending;
    int64_t pending_count;
    bool input_ended;
    bool unserved; /* whole lines may be at hand: the turn was over before them */
    bool deaf;     /* takes no more lines: its peer is no client any more, or the daemon ends */
    bool closed;
};

static void session_serve(struct session *session);

static bool wants_input(const struct session *session)
{
    return !session->closed && !session->input_ended &&
           session->pending_count < session->line->config->max_pending &&
           evbuffer_get_length(session->output) < SESSION_OUTPUT_PAUSE;
}

/* Reading follows what wants_input() says. */
static void update_reading(struct session *session)
{
    bool reading = event_pending(session->readable, EV_READ, NULL) != 0;
    if (wants_input(session) && !reading) {
        if (event_add(session->readable, NULL) != 0)
            session_close(session);
        else
            deadline_start(&session->resume, 0);
    } else if (!wants_input(session) && reading) {
        (void)event_del(session->readable);
    }
}

static bool has_gone(const struct session *session)
{
    struct pollfd fd = {.fd = session->fd};
    return poll(&fd, 1, 0) == 1 && (fd.revents & (POLLHUP | POLLERR));
}

/* A client that has sent everything is served until nothing is owed any more. */
static void close_if_served(struct session *session)
{
    if (session->closed || !session->input_ended || session->unserved)
        return;
    if (TAILQ_EMPTY(&session->pending) && evbuffer_get_length(session->output) == 0)
        session_close(session);
}

static void write_some(evutil_socket_t fd, short what, void *context)
{
    struct session *session = context;
    (void)what;
    if (fault_is_due("reply_half_written")) {
        (void)evbuffer_write_atmost(session->output, fd,
                                    (ev_ssize_t)evbuffer_get_length(session->output) / 2);
        fault_strike();
    }
    int n = evbuffer_write(session->output, fd);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        session_close(session);
        return;
    }
    if (evbuffer_get_length(session->output) == 0) {
        (void)event_del(session->writable);
        deadline_stop(&session->stall);
    } else if (n > 0) {
        deadline_start(&session->stall, session->line->config->stall_timeout_ms);
    }
    update_reading(session);
    close_if_served(session);
}

static void stalled(void *context)
{
    struct session *session = context;
    log_warning("client %s (pid %ld) reads nothing: cut off", session->client.name,
                (long)session->client.pid);
    session_close(session);
}

/* One line that is at hand goes to its method. False when there is none, or no more wanted. */
static bool serve_line(struct session *session)
{
    char *line;
    size_t length;
    if (session->closed || session->deaf ||
        session->pending_count >= session->line->config->max_pending)
        return false;
    switch (frame_next(&session->reader, &line, &length)) {
    case FRAME_DONE:
        methods_serve(session, line, length);
        return true;
    case FRAME_BAD:
        methods_refuse_line(session);
        session->input_ended = true;
        return false;
    default:
        return false;
    }
}

static void session_serve(struct session *session)
{
    int served = 0;
    while (served < SESSION_TURN_LINES && serve_line(session))
        served++;
    if (session->closed)
        return;
    session->unserved = served == SESSION_TURN_LINES;
    if (session->unserved)
        deadline_start(&session->resume, 0);
    update_reading(session);
    close_if_served(session);
}

static void resume_serving(void *context)
{
    session_serve(context);
}

static void read_some(evutil_socket_t fd, short what, void *context)
{
    struct session *session = context;
    char *space;
    size_t available;
    (void)what;
    int rc = frame_space(&session->reader, &space, &available);
    if (rc < 0) {
        session_close(session);
        return;
    }
    ssize_t n =
        rc == 0 ? read(fd, space, available < SESSION_READ_BYTES ? available : SESSION_READ_BYTES)
                : -1;
    if (rc == 0 && n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (rc == 0 && (n < 0 || (n == 0 && has_gone(session)))) {
        session_close(session);
        return;
    }
    if (n > 0)
        frame_commit(&session->reader, (size_t)n);
    if (n == 0)
        session->input_ended = true;
    session_serve(session);
}

/* Room for the events, in one place so that a failure frees all. */
static int make_parts(struct session *session)
{
    struct event_base *base = session->line->base;
    session->output = evbuffer_new();
    session->readable = event_new(base, session->fd, EV_READ | EV_PERSIST, read_some, session);
    session->writable = event_new(base, session->fd, EV_WRITE | EV_PERSIST, write_some, session);
    if (!session->output || !session->readable || !session->writable)
        return -ENOMEM;
    if (event_add(session->readable, NULL) != 0)
        return -ENOMEM;
    int rc = deadline_init(&session->resume, base, resume_serving, session);
    return rc == 0 ? deadline_init(&session->stall, base, stalled, session) : rc;
}

int session_open(struct listener *listener, struct line *line, int fd,
                 const struct peer_client *client)
{
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        (void)close(fd);
        return -ENOMEM;
    }
    *session = (struct session){.listener = listener, .line = line, .fd = fd, .client = *client};
    TAILQ_INIT(&session->pending);
    frame_init(&session->reader, (size_t)line->config->max_line_bytes);
    int rc = make_parts(session);
    if (rc < 0)
        session_bury(session);
    else
        listener_add_session(listener, session);
    return rc;
}

void session_close(struct session *session)
{
    struct pending *pending;
    if (session->closed)
        return;
    session->closed = true;
    (void)event_del(session->readable);
    (void)event_del(session->writable);
    deadline_stop(&session->resume);
    deadline_stop(&session->stall);
    while ((pending = TAILQ_FIRST(&session->pending))) {
        TAILQ_REMOVE(&session->pending, pending, in_session);
        pending->session = NULL;
        if (pending->gone)
            pending->gone(pending);
    }
    listener_bury_session(session->listener, session);
}

static void stop_listening(struct session *session)
{
    session->deaf = session->input_ended = true;
    session->unserved = false;
}

static void forbid(struct session *session)
{
    size_t length;
    log_warning("client %s (pid %ld) is no client any more: forbidden", session->client.name,
                (long)session->client.pid);
    session->client.policy = NULL;
    session->client.name = "(forbidden)";
    stop_listening(session);
    char *line = rpc_error_line("null", RPC_FORBIDDEN, NULL, &length);
    session_send(session, line, length);
    if (!session->closed)
        update_reading(session);
}

void session_rematch(struct session *session)
{
    struct peer_client client;
    if (session->closed || session->deaf)
        return;
    int rc = peer_identify(session->fd, session->line->config, &client);
    if (rc < 0 || !client.policy)
        forbid(session);
    else
        session->client = client;
}

void session_finish(struct session *session)
{
    if (session->closed)
        return;
    stop_listening(session);
    update_reading(session);
    close_if_served(session);
}

void session_bury(struct session *session)
{
    frame_free(&session->reader);
    deadline_free(&session->resume);
    deadline_free(&session->stall);
    if (session->readable)
        event_free(session->readable);
    if (session->writable)
        event_free(session->writable);
    if (session->output)
        evbuffer_free(session->output);
    (void)close(session->fd);
    free(session);
}

struct pending *session_find(struct session *session, const char *id_text)
{
    struct pending *pending;
    TAILQ_FOREACH(pending, &session->pending, in_session)
        if (id_text[0] && strcmp(pending->id_text, id_text) == 0)
            return pending;
    return NULL;
}

int session_owe(struct session *session, struct pending *pending, const char *id_text,
                void (*gone)(struct pending *pending))
{
    if (session_find(session, id_text))
        return 1;
    pending->session = session;
    pending->gone = gone;
    size_t length = strnlen(id_text, sizeof pending->id_text - 1);
    memcpy(pending->id_text, id_text, length);
    pending->id_text[length] = 0;
    TAILQ_INSERT_TAIL(&session->pending, pending, in_session);
    session->pending_count++;
    return 0;
}

static void free_line(const void *data, size_t length, void *line)
{
    (void)data;
    (void)length;
    free(line);
}

void session_send(struct session *session, char *line, size_t length)
{
    if (session->closed || !line ||
        evbuffer_get_length(session->output) + length > SESSION_OUTPUT_LIMIT) {
        free(line);
        session_close(session);
        return;
    }
    if (evbuffer_add_reference(session->output, line, length, free_line, line) != 0) {
        free(line);
        session_close(session);
        return;
    }
    if (!event_pending(session->writable, EV_WRITE, NULL)) {
        if (event_add(session->writable, NULL) != 0) {
            session_close(session);
            return;
        }
        deadline_start(&session->stall, session->line->config->stall_timeout_ms);
    }
    if (!wants_input(session))
        update_reading(session);
}

void session_answer(struct pending *pending, char *line, size_t length)
{
    struct session *session = pending->session;
    if (!session) {
        free(line);
        return;
    }
    TAILQ_REMOVE(&session->pending, pending, in_session);
    pending->session = NULL;
    session->pending_count--;
    if (pending->id_text[0])
        session_send(session, line, length);
    else
        free(line);
    update_reading(session);
    if (!session->closed && session->input_ended)
        deadline_start(&session->resume, 0);
}

const struct peer_client *session_client(const struct session *session)
{
    return &session->client;
}

struct line *session_line(const struct session *session)
{
    return session->line;
}

bool session_has_room(const struct session *session)
{
    return evbuffer_get_length(session->output) < SESSION_OUTPUT_PAUSE;
}

bool session_is_flushed(const struct session *session)
{
    return TAILQ_EMPTY(&session->pending) && evbuffer_get_length(session->output) == 0;
}

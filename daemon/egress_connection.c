/*
 * egress_connection.c - from the first byte of code to the copying.
 *
 * asking -> dialing -> relaying -> lingering -> closed, and from everywhere to closed. While a way is
 * looked for nothing is read. A refusal is written, the end is said, and what code still sends is
 * thrown away for a moment, so that the answer is not lost in a reset.
 */
#include "daemon/egress_connection.h"

#include "daemon/egress_dial.h"
#include "daemon/egress_relay.h"
#include "protocol/proxy_http.h"
#include "protocol/proxy_socks.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define LINGER_MS    2000
#define ANSWER_BYTES 320
#define INPUT_BYTES  1024 /* at first; it doubles up to the longest head */

enum state { ASKING, DIALING, RELAYING, LINGERING, CLOSED };

struct egress_connection {
    TAILQ_ENTRY(egress_connection) link;
    struct egress *egress;
    const struct egress_start *start;
    struct egress_account *account;
    int fd, network;
    enum state state;
    struct event *readable;
    struct deadline deadline; /* for asking, and for lingering */
    char *input;
    size_t length, capacity, scanned;
    bool is_socks, was_greeted;
    struct proxy_http request;
    struct egress_use *use;
    struct egress_dial dial;
    struct egress_relay relay;
};

/* ---- refusing ----------------------------------------------------------------------------------- */

enum refusal {
    MALFORMED,
    NOT_GRANTED,
    NO_SUCH_COMMAND,
    NO_SUCH_ADDRESS_TYPE,
    FORBIDDEN,
    UNKNOWN,
    UNRESOLVED,
    REFUSED,
    UNREACHABLE,
    TIMED_OUT,
    NO_MEMORY
};

static const struct {
    const char *status, *reason;
    enum proxy_socks_code code;
    bool is_counted; /* the proxy would not; else the network did not */
} refusals[] = {
    [MALFORMED] = {"400 Bad Request", "malformed request", PROXY_SOCKS_FAILURE, true},
    [NOT_GRANTED] = {"403 Forbidden", "host not granted", PROXY_SOCKS_NOT_ALLOWED, true},
    [NO_SUCH_COMMAND] = {"400 Bad Request", "no such command", PROXY_SOCKS_NO_SUCH_COMMAND, true},
    [NO_SUCH_ADDRESS_TYPE] = {"400 Bad Request", "no such type of address",
                              PROXY_SOCKS_NO_SUCH_ADDRESS_TYPE, true},
    [FORBIDDEN] = {"403 Forbidden", "address not allowed", PROXY_SOCKS_NOT_ALLOWED, true},
    [UNKNOWN] = {"502 Bad Gateway", "no such name", PROXY_SOCKS_HOST_UNREACHABLE, false},
    [UNRESOLVED] = {"504 Gateway Timeout", "name not resolved", PROXY_SOCKS_HOST_UNREACHABLE,
                    false},
    [REFUSED] = {"502 Bad Gateway", "connection refused", PROXY_SOCKS_CONNECTION_REFUSED, false},
    [UNREACHABLE] = {"502 Bad Gateway", "host unreachable", PROXY_SOCKS_HOST_UNREACHABLE, false},
    [TIMED_OUT] = {"504 Gateway Timeout", "connection timed out", PROXY_SOCKS_HOST_UNREACHABLE,
                   false},
    [NO_MEMORY] = {"503 Service Unavailable", "out of memory", PROXY_SOCKS_FAILURE, false},
};

static const enum refusal refusal_of_outcome[] = {
    [EGRESS_DIAL_FORBIDDEN] = FORBIDDEN,     [EGRESS_DIAL_UNKNOWN] = UNKNOWN,
    [EGRESS_DIAL_UNRESOLVED] = UNRESOLVED,   [EGRESS_DIAL_REFUSED] = REFUSED,
    [EGRESS_DIAL_UNREACHABLE] = UNREACHABLE, [EGRESS_DIAL_TIMED_OUT] = TIMED_OUT,
};

/* What the code gets must fit the socket's own buffer, which is empty: else it goes without. */
static void send_all(struct egress_connection *connection, const void *data, size_t length)
{
    if (send(connection->fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)length)
        egress_connection_close(connection);
}

/* From here on only the other's end is waited for. */
static void linger(struct egress_connection *connection)
{
    connection->state = LINGERING;
    base_close(&connection->network);
    connection->network = -1;
    (void)shutdown(connection->fd, SHUT_WR);
    if (event_add(connection->readable, NULL) != 0)
        egress_connection_close(connection);
    else
        deadline_start(&connection->deadline, LINGER_MS);
}

static void answer_http(struct egress_connection *connection, enum refusal refusal)
{
    static const char name[] = "auditrun: ";
    char text[ANSWER_BYTES];
    const char *reason = refusals[refusal].reason;
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                          "Cache-Control: no-store\r\nConnection: close\r\n\r\n%s%s\n",
                          refusals[refusal].status, sizeof name + strlen(reason), name, reason);
    if (length > 0 && length < ANSWER_BYTES)
        send_all(connection, text, (size_t)length);
}

static void refuse(struct egress_connection *connection, enum refusal refusal)
{
    uint8_t reply[PROXY_SOCKS_REPLY_BYTES];
    if (refusals[refusal].is_counted)
        egress_account_refused(connection->account);
    proxy_socks_reply(refusals[refusal].code, reply);
    if (connection->is_socks)
        send_all(connection, reply, sizeof reply);
    else
        answer_http(connection, refusal);
    if (connection->state != CLOSED)
        linger(connection);
}

/* ---- relaying ----------------------------------------------------------------------------------- */

/* A reset tells the other side that what it has got is not all. */
static void reset(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

static void relayed(void *context, bool whole)
{
    struct egress_connection *connection = context;
    if (!whole) {
        reset(connection->fd);
        reset(connection->network);
        egress_connection_close(connection);
    } else if (connection->request.is_tunnel || connection->is_socks) {
        egress_connection_close(connection);
    } else {
        linger(connection);
    }
}

static void start_relay(struct egress_connection *connection)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct proxy_http *request = &connection->request;
    const bool is_tunnel = connection->is_socks || request->is_tunnel;
    uint8_t reply[PROXY_SOCKS_REPLY_BYTES];
    struct egress_relay_first first = {.head = request->forward,
                                       .head_length = request->forward_length,
                                       .rest = connection->input,
                                       .rest_length = connection->length};
    proxy_socks_reply(PROXY_SOCKS_GRANTED, reply);
    if (is_tunnel) {
        first.reply = connection->is_socks ? (const void *)reply : established;
        first.reply_length = connection->is_socks ? sizeof reply : sizeof established - 1;
    }
    connection->relay = (struct egress_relay){.base = connection->start->base,
                                              .config = connection->start->config,
                                              .account = connection->account,
                                              .use = connection->use,
                                              .body = is_tunnel ? NULL : &request->body,
                                              .done = relayed,
                                              .context = connection};
    connection->state = RELAYING;
    if (egress_relay_start(&connection->relay, connection->fd, connection->network, &first) < 0) {
        egress_connection_close(connection);
        return;
    }
    free(connection->input);
    connection->input = NULL;
    free(request->forward);
    request->forward = NULL;
}

/* ---- dialing ------------------------------------------------------------------------------------ */

static void dialed(void *context, enum egress_dial_outcome outcome, int fd)
{
    struct egress_connection *connection = context;
    if (outcome != EGRESS_DIAL_CONNECTED) {
        refuse(connection, refusal_of_outcome[outcome]);
        return;
    }
    connection->network = fd;
    egress_account_connected(connection->account, connection->use);
    start_relay(connection);
}

/* The grant is asked before anybody else is. */
static void dial(struct egress_connection *connection, const struct target *target)
{
    const struct egress_start *start = connection->start;
    (void)event_del(connection->readable);
    deadline_stop(&connection->deadline);
    connection->use = egress_account_match(connection->account, start->grant, target);
    if (!connection->use) {
        refuse(connection, NOT_GRANTED);
        return;
    }
    connection->state = DIALING;
    connection->dial = (struct egress_dial){.base = start->base,
                                            .resolver = start->resolver,
                                            .config = start->config,
                                            .done = dialed,
                                            .context = connection};
    if (egress_dial_start(&connection->dial, target) < 0)
        refuse(connection, NO_MEMORY);
}

/* ---- asking ------------------------------------------------------------------------------------- */

static void consume(struct egress_connection *connection, size_t used)
{
    memmove(connection->input, connection->input + used, connection->length - used);
    connection->length -= used;
}

static void ask_http(struct egress_connection *connection)
{
    struct proxy_http *request = &connection->request;
    int rc = proxy_http_read(connection->input, connection->length, &connection->scanned, request);
    if (rc == PROXY_HTTP_MORE)
        return;
    if (rc != PROXY_HTTP_DONE) {
        refuse(connection, rc < 0 ? NO_MEMORY : MALFORMED);
        return;
    }
    consume(connection, request->head_bytes);
    dial(connection, &request->target);
}

/* The client has to hear which method it may use, before it asks. False: no more now. */
static bool greet(struct egress_connection *connection)
{
    static const uint8_t welcome[] = {PROXY_SOCKS_VERSION, 0}, none[] = {PROXY_SOCKS_VERSION, 0xff};
    size_t used = 0;
    bool offered = false;
    enum proxy_socks_result result = proxy_socks_greeting((const uint8_t *)connection->input,
                                                          connection->length, &used, &offered);
    if (result == PROXY_SOCKS_MORE)
        return false;
    if (result == PROXY_SOCKS_DONE && offered) {
        consume(connection, used);
        connection->was_greeted = true;
        send_all(connection, welcome, sizeof welcome);
        return connection->state == ASKING;
    }
    egress_account_refused(connection->account);
    send_all(connection, none, sizeof none);
    if (connection->state != CLOSED)
        linger(connection);
    return false;
}

static enum refusal refusal_of_code(enum proxy_socks_code code)
{
    if (code == PROXY_SOCKS_NO_SUCH_COMMAND)
        return NO_SUCH_COMMAND;
    return code == PROXY_SOCKS_NO_SUCH_ADDRESS_TYPE ? NO_SUCH_ADDRESS_TYPE : NOT_GRANTED;
}

static void ask_socks(struct egress_connection *connection)
{
    size_t used = 0;
    struct target target;
    enum proxy_socks_code code = PROXY_SOCKS_FAILURE;
    if (!connection->was_greeted && !greet(connection))
        return;
    enum proxy_socks_result result = proxy_socks_request((const uint8_t *)connection->input,
                                                         connection->length, &used, &code, &target);
    if (result == PROXY_SOCKS_MORE)
        return;
    if (result == PROXY_SOCKS_BAD || code != PROXY_SOCKS_GRANTED) {
        refuse(connection, result == PROXY_SOCKS_BAD ? MALFORMED : refusal_of_code(code));
        return;
    }
    consume(connection, used);
    dial(connection, &target);
}

/* One kind of first byte is SOCKS5, whatever else comes has to be HTTP. */
static void ask(struct egress_connection *connection)
{
    connection->is_socks =
        connection->was_greeted || connection->input[0] == (char)PROXY_SOCKS_VERSION;
    if (connection->is_socks)
        ask_socks(connection);
    else
        ask_http(connection);
}

static int make_room(struct egress_connection *connection)
{
    if (connection->length < connection->capacity)
        return 0;
    size_t capacity = connection->capacity ? 2 * connection->capacity : INPUT_BYTES;
    char *input = realloc(connection->input, capacity);
    if (!input)
        return -ENOMEM;
    connection->input = input;
    connection->capacity = capacity;
    return 0;
}

/* Bytes into the place, or the end of the connection: a code that leaves before it got an answer. */
static size_t receive(struct egress_connection *connection, char *place, size_t room)
{
    ssize_t n = recv(connection->fd, place, room, MSG_DONTWAIT);
    if (n > 0)
        return (size_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        egress_connection_close(connection);
    return 0;
}

static void read_some(evutil_socket_t fd, short what, void *context)
{
    struct egress_connection *connection = context;
    char waste[INPUT_BYTES];
    (void)fd;
    (void)what;
    if (connection->state == LINGERING) {
        (void)receive(connection, waste, sizeof waste);
        return;
    }
    if (make_room(connection) < 0) {
        refuse(connection, NO_MEMORY);
        return;
    }
    size_t n = receive(connection, connection->input + connection->length,
                       connection->capacity - connection->length);
    connection->length += n;
    if (n > 0)
        ask(connection);
}

/* It has asked for too long, or has had its time to read an answer. */
static void passed(void *context)
{
    egress_connection_close(context);
}

/* Code is at the other end of a loopback, on which pacing costs much and gains nothing. */
static void tune(int fd)
{
    static const char plain[] = "reno";
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

/* ---- life --------------------------------------------------------------------------------------- */

int egress_connection_open(struct egress *egress, const struct egress_start *start,
                           struct egress_account *account, int fd, struct egress_connection **out)
{
    struct egress_connection *connection = calloc(1, sizeof *connection);
    if (!connection) {
        (void)close(fd);
        return -ENOMEM;
    }
    *connection = (struct egress_connection){
        .egress = egress, .start = start, .account = account, .fd = fd, .network = -1};
    tune(fd);
    connection->readable = event_new(start->base, fd, EV_READ | EV_PERSIST, read_some, connection);
    if (!connection->readable ||
        deadline_init(&connection->deadline, start->base, passed, connection) < 0 ||
        event_add(connection->readable, NULL) != 0) {
        egress_connection_bury(connection);
        return -ENOMEM;
    }
    deadline_start(&connection->deadline, start->config->connect_timeout_ms);
    *out = connection;
    return 0;
}

/* All that could call back, and the descriptors. */
static void take_apart(struct egress_connection *connection)
{
    egress_relay_stop(&connection->relay);
    egress_dial_stop(&connection->dial);
    deadline_free(&connection->deadline);
    if (connection->readable)
        event_free(connection->readable);
    connection->readable = NULL;
    base_close(&connection->fd);
    base_close(&connection->network);
    connection->fd = connection->network = -1;
}

void egress_connection_close(struct egress_connection *connection)
{
    if (connection->state == CLOSED)
        return;
    connection->state = CLOSED;
    take_apart(connection);
    egress_bury(connection->egress, connection);
}

void egress_connection_bury(struct egress_connection *connection)
{
    take_apart(connection);
    proxy_http_free(&connection->request);
    free(connection->input);
    free(connection);
}

void egress_connection_insert(struct egress_connections *list, struct egress_connection *connection)
{
    TAILQ_INSERT_TAIL(list, connection, link);
}

void egress_connection_remove(struct egress_connections *list, struct egress_connection *connection)
{
    TAILQ_REMOVE(list, connection, link);
}

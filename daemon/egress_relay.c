/*
 * egress_relay.c - two flows between two sockets.
 *
 * A flow reads only when it has nothing to write. A request that is no tunnel passes up to the end of
 * its body; whatever code sends behind that is thrown away and counted as one refusal, since it could
 * only be another request. The network may close its ear early and still answer (a server that has seen
 * enough of a body): the rest of the body is thrown away then.
 */
#include "daemon/egress_relay.h"

#include "daemon/clock.h"
#include "daemon/loop.h"

#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

#define TURN_READS 2 /* in one turn, so that one connection cannot hold the loop */

static bool is_tunnel(const struct egress_relay *relay)
{
    return relay->body == NULL;
}

static void break_off(struct egress_relay *relay)
{
    relay->is_broken = true;
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* Of what is to be written so many bytes were; 0: the other end takes nothing now, or never will. */
static size_t write_some(struct egress_relay *relay, enum egress_relay_side from, const char *data,
                         size_t length)
{
    struct egress_relay_flow *flow = &relay->flows[from];
    ssize_t n = send(relay->ends[!from].fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
        relay->active_us = clock_monotonic_us();
        return (size_t)n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    flow->is_deaf = true;
    flow->length = 0;
    if (is_tunnel(relay) || from == EGRESS_RELAY_NETWORK)
        break_off(relay);
    return 0;
}

static void forget_pending(struct egress_relay_flow *flow)
{
    free(flow->pending);
    flow->pending = NULL;
    flow->start = flow->length = 0;
}

/* Adds to what is to be written. */
static void keep(struct egress_relay *relay, enum egress_relay_side from, const char *data,
                 size_t length)
{
    struct egress_relay_flow *flow = &relay->flows[from];
    if (length == 0)
        return;
    char *pending = realloc(flow->pending, flow->start + flow->length + length);
    if (!pending) {
        break_off(relay);
        return;
    }
    memcpy(pending + flow->start + flow->length, data, length);
    flow->pending = pending;
    flow->length += length;
}

static void flush(struct egress_relay *relay, enum egress_relay_side from)
{
    struct egress_relay_flow *flow = &relay->flows[from];
    if (flow->length > 0) {
        size_t n = write_some(relay, from, flow->pending + flow->start, flow->length);
        flow->start += n;
        flow->length -= flow->length > 0 ? n : 0;
    }
    if (flow->length == 0)
        forget_pending(flow);
}

static void pass_on(struct egress_relay *relay, enum egress_relay_side from, const char *data,
                    size_t length)
{
    size_t n = length > 0 ? write_some(relay, from, data, length) : 0;
    if (!relay->flows[from].is_deaf)
        keep(relay, from, data + n, length - n);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static void count(struct egress_relay *relay, enum egress_relay_side from, size_t length)
{
    if (from == EGRESS_RELAY_CODE)
        egress_account_out(relay->account, relay->use, length);
    else
        egress_account_in(relay->account, relay->use, length);
}

/* How many of these bytes of the code go on. */
static size_t filter(struct egress_relay *relay, const char *data, size_t length)
{
    struct egress_relay_flow *flow = &relay->flows[EGRESS_RELAY_CODE];
    if (is_tunnel(relay) || flow->is_deaf)
        return flow->is_deaf ? 0 : length;
    size_t taken = proxy_body_take(relay->body, data, length);
    if (proxy_body_is_broken(relay->body)) {
        egress_account_refused(relay->account);
        break_off(relay);
    } else if (taken < length && !flow->has_more) {
        egress_account_refused(relay->account);
        flow->has_more = true;
    }
    return taken;
}

static void end_flow(struct egress_relay *relay, enum egress_relay_side from)
{
    relay->flows[from].has_ended = true;
    if (from == EGRESS_RELAY_CODE && !is_tunnel(relay) && !proxy_body_is_over(relay->body) &&
        !relay->flows[from].is_deaf)
        break_off(relay);
}

/* Reads at most what the run may still have: when that is nothing, one byte tells whether more comes. */
static size_t read_some(struct egress_relay *relay, enum egress_relay_side from, char *buffer)
{
    const int64_t left = relay->account->left;
    const size_t most =
        left < EGRESS_RELAY_BYTES ? (size_t)(left > 0 ? left : 1) : (size_t)EGRESS_RELAY_BYTES;
    ssize_t n = recv(relay->ends[from].fd, buffer, most, MSG_DONTWAIT);
    if (n > 0) {
        relay->active_us = clock_monotonic_us();
        if (left <= 0)
            break_off(relay);
        return left > 0 ? (size_t)n : 0;
    }
    if (n == 0)
        end_flow(relay, from);
    else if (errno != EAGAIN && errno != EINTR)
        break_off(relay);
    return 0;
}

/* Reads and passes on, once. False: there is nothing more to do for now. */
static bool copy(struct egress_relay *relay, enum egress_relay_side from)
{
    char buffer[EGRESS_RELAY_BYTES];
    size_t n = read_some(relay, from, buffer);
    size_t taken = from == EGRESS_RELAY_CODE && n > 0 ? filter(relay, buffer, n) : n;
    if (n == 0 || relay->is_broken)
        return false;
    count(relay, from, taken);
    pass_on(relay, from, buffer, taken);
    return true;
}

/* ---- the relay ---------------------------------------------------------------------------------- */

static void finish(struct egress_relay *relay, bool whole)
{
    egress_relay_fn *done = relay->done;
    void *context = relay->context;
    egress_relay_stop(relay);
    done(context, whole);
}

/* An end is passed on once all before it has been: to the network only of a tunnel, since servers take
 * the end of what they are sent for the end of a client's patience. */
static void close_flow(struct egress_relay *relay, enum egress_relay_side from)
{
    struct egress_relay_flow *flow = &relay->flows[from];
    if (!flow->has_ended || flow->is_closed || flow->length > 0)
        return;
    flow->is_closed = true;
    if (is_tunnel(relay))
        (void)shutdown(relay->ends[!from].fd, SHUT_WR);
}

static bool is_over(const struct egress_relay *relay)
{
    const struct egress_relay_flow *flows = relay->flows;
    return flows[EGRESS_RELAY_NETWORK].is_closed &&
           (!is_tunnel(relay) || flows[EGRESS_RELAY_CODE].is_closed);
}

static void want(struct egress_relay *relay, struct event *event, short what, bool wanted)
{
    bool waiting = event_pending(event, what, NULL) != 0;
    if (wanted && !waiting && event_add(event, NULL) != 0)
        break_off(relay);
    else if (!wanted && waiting)
        (void)event_del(event);
}

/* After whatever has been done: is it over, and what is to be waited for? */
static void settle(struct egress_relay *relay)
{
    for (int side = EGRESS_RELAY_CODE; side <= EGRESS_RELAY_NETWORK; side++)
        close_flow(relay, (enum egress_relay_side)side);
    for (int side = EGRESS_RELAY_CODE; side <= EGRESS_RELAY_NETWORK; side++) {
        struct egress_relay_flow *flow = &relay->flows[side];
        want(relay, relay->ends[side].readable, EV_READ, !flow->has_ended && flow->length == 0);
        want(relay, relay->ends[!side].writable, EV_WRITE, flow->length > 0);
    }
    if (relay->is_broken || is_over(relay))
        finish(relay, !relay->is_broken);
}

static void move(struct egress_relay *relay, enum egress_relay_side from)
{
    struct egress_relay_flow *flow = &relay->flows[from];
    for (int reads = 0; reads < TURN_READS && !relay->is_broken; reads++) {
        flush(relay, from);
        if (flow->length > 0 || flow->has_ended || !copy(relay, from))
            break;
    }
    settle(relay);
}

static void readable(evutil_socket_t fd, short what, void *context)
{
    struct egress_relay *relay = context;
    (void)what;
    move(relay, fd == relay->ends[EGRESS_RELAY_CODE].fd ? EGRESS_RELAY_CODE : EGRESS_RELAY_NETWORK);
}

static void writable(evutil_socket_t fd, short what, void *context)
{
    struct egress_relay *relay = context;
    (void)what;
    move(relay, fd == relay->ends[EGRESS_RELAY_CODE].fd ? EGRESS_RELAY_NETWORK : EGRESS_RELAY_CODE);
}

/* The timer is not set for each byte: when it has passed, what happened meanwhile sets it again. */
static void passed(void *context)
{
    struct egress_relay *relay = context;
    int64_t quiet_ms = (clock_monotonic_us() - relay->active_us) / 1000;
    if (!relay->is_broken && quiet_ms < relay->config->idle_timeout_ms)
        deadline_start(&relay->idle, relay->config->idle_timeout_ms - quiet_ms);
    else
        finish(relay, false);
}

static int make_end(struct egress_relay *relay, enum egress_relay_side side, int fd)
{
    struct egress_relay_end *end = &relay->ends[side];
    end->fd = fd;
    end->readable = event_new(relay->base, fd, EV_READ | EV_PERSIST, readable, relay);
    end->writable = event_new(relay->base, fd, EV_WRITE | EV_PERSIST, writable, relay);
    if (!end->readable || !end->writable)
        return -ENOMEM;
    /* A loop without priorities has only one, which serves as well. */
    (void)event_priority_set(end->readable, LOOP_PRIORITY_BULK);
    (void)event_priority_set(end->writable, LOOP_PRIORITY_BULK);
    return event_add(end->readable, NULL) == 0 ? 0 : -ENOMEM;
}

static void keep_first(struct egress_relay *relay, const struct egress_relay_first *first)
{
    size_t taken = filter(relay, first->rest, first->rest_length);
    keep(relay, EGRESS_RELAY_CODE, first->head, first->head_length);
    keep(relay, EGRESS_RELAY_CODE, first->rest, taken);
    keep(relay, EGRESS_RELAY_NETWORK, first->reply, first->reply_length);
    count(relay, EGRESS_RELAY_CODE, first->head_length + taken);
}

int egress_relay_start(struct egress_relay *relay, int code, int network,
                       const struct egress_relay_first *first)
{
    relay->active_us = clock_monotonic_us();
    int rc = deadline_init(&relay->idle, relay->base, passed, relay);
    if (rc == 0)
        rc = make_end(relay, EGRESS_RELAY_CODE, code);
    if (rc == 0)
        rc = make_end(relay, EGRESS_RELAY_NETWORK, network);
    if (rc == 0) {
        keep_first(relay, first);
        for (int side = EGRESS_RELAY_CODE; rc == 0 && side <= EGRESS_RELAY_NETWORK; side++)
            if (relay->flows[!side].length > 0)
                rc = event_add(relay->ends[side].writable, NULL) == 0 ? 0 : -ENOMEM;
    }
    if (rc < 0)
        egress_relay_stop(relay);
    else
        deadline_start(&relay->idle, relay->is_broken ? 0 : relay->config->idle_timeout_ms);
    return rc;
}

void egress_relay_stop(struct egress_relay *relay)
{
    for (int side = EGRESS_RELAY_CODE; side <= EGRESS_RELAY_NETWORK; side++) {
        struct egress_relay_end *end = &relay->ends[side];
        if (end->readable)
            event_free(end->readable);
        if (end->writable)
            event_free(end->writable);
        end->readable = end->writable = NULL;
        forget_pending(&relay->flows[side]);
    }
    deadline_free(&relay->idle);
}

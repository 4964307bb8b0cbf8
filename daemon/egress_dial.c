/*
 * egress_dial.c - the way from a target to a socket that is connected to it.
 *
 * IPv4 and IPv6 addresses take turns, so that a host without one of them does not spend all its tries
 * on it. Each try gets an equal part of the time that is left.
 */
#include "daemon/egress_dial.h"

#include "daemon/clock.h"
#include "daemon/egress_account.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static void try_next(struct egress_dial *dial);

static void finish(struct egress_dial *dial, enum egress_dial_outcome outcome, int fd)
{
    egress_dial_fn *done = dial->done;
    void *context = dial->context;
    egress_dial_stop(dial);
    done(context, outcome, fd);
}

/* Takes the socket out of the dial. */
static int take_socket(struct egress_dial *dial)
{
    if (!dial->connected)
        return -1;
    event_free(dial->connected);
    dial->connected = NULL;
    return base_take_fd(&dial->fd);
}

static void drop_socket(struct egress_dial *dial)
{
    const int fd = take_socket(dial);
    base_close(&fd);
}

static enum egress_dial_outcome problem_of(int error)
{
    if (error == ECONNREFUSED)
        return EGRESS_DIAL_REFUSED;
    return error == ETIMEDOUT ? EGRESS_DIAL_TIMED_OUT : EGRESS_DIAL_UNREACHABLE;
}

static void connected(evutil_socket_t fd, short what, void *context)
{
    struct egress_dial *dial = context;
    int error = 0;
    socklen_t size = sizeof error;
    (void)what;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (error == 0) {
        finish(dial, EGRESS_DIAL_CONNECTED, take_socket(dial));
        return;
    }
    dial->problem = problem_of(error);
    drop_socket(dial);
    try_next(dial);
}

/* Begins to connect. 0, or 1 with the problem set: to be tried with the next address. */
static int connect_to(struct egress_dial *dial, const struct address *address)
{
    struct sockaddr_storage there;
    const int on = 1;
    socklen_t length = address_to_sockaddr(address, dial->port, &there);
    AR_AUTO_CLOSE int fd =
        socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    dial->problem = EGRESS_DIAL_UNREACHABLE;
    if (fd < 0)
        return 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&there, length) != 0 && errno != EINPROGRESS) {
        dial->problem = problem_of(errno);
        return 1;
    }
    dial->connected = event_new(dial->base, fd, EV_WRITE, connected, dial);
    if (!dial->connected)
        return 1;
    dial->fd = base_take_fd(&fd);
    if (event_add(dial->connected, NULL) == 0)
        return 0;
    drop_socket(dial);
    return 1;
}

static void try_next(struct egress_dial *dial)
{
    while (dial->next < dial->count) {
        int64_t left_ms = (dial->end_us - clock_monotonic_us()) / 1000;
        int64_t tries = (int64_t)(dial->count - dial->next);
        if (left_ms <= 0) {
            dial->problem = EGRESS_DIAL_TIMED_OUT;
            break;
        }
        if (connect_to(dial, &dial->addresses[dial->next++]) == 0) {
            deadline_start(&dial->deadline, left_ms / tries);
            return;
        }
    }
    finish(dial, dial->problem, -1);
}

/* Also the beginning for an address that need not be looked up. */
static void passed(void *context)
{
    struct egress_dial *dial = context;
    if (dial->connected) {
        dial->problem = EGRESS_DIAL_TIMED_OUT;
        drop_socket(dial);
    }
    try_next(dial);
}

/* Those of one family that may be connected to, in the order of the answer. */
static size_t pick(const struct egress_dial *dial, const struct address *from, size_t count,
                   bool is_v6, struct address out[EGRESS_DIAL_MAX])
{
    size_t picked = 0;
    for (size_t i = 0; i < count && picked < EGRESS_DIAL_MAX; i++)
        if (from[i].is_v6 == is_v6 && egress_account_permits(dial->config, &from[i]))
            out[picked++] = from[i];
    return picked;
}

static void choose(struct egress_dial *dial, const struct address *from, size_t count)
{
    struct address v4[EGRESS_DIAL_MAX], v6[EGRESS_DIAL_MAX];
    size_t v4_count = pick(dial, from, count, false, v4);
    size_t v6_count = pick(dial, from, count, true, v6);
    dial->count = dial->next = 0;
    for (size_t i = 0; i < EGRESS_DIAL_MAX; i++) {
        if (i < v4_count && dial->count < EGRESS_DIAL_MAX)
            dial->addresses[dial->count++] = v4[i];
        if (i < v6_count && dial->count < EGRESS_DIAL_MAX)
            dial->addresses[dial->count++] = v6[i];
    }
    dial->problem = EGRESS_DIAL_FORBIDDEN;
}

static void answered(void *context, enum resolver_outcome outcome, const struct address *addresses,
                     size_t count)
{
    struct egress_dial *dial = context;
    dial->query = NULL;
    if (outcome != RESOLVER_FOUND) {
        finish(dial, outcome == RESOLVER_NOT_FOUND ? EGRESS_DIAL_UNKNOWN : EGRESS_DIAL_UNRESOLVED,
               -1);
        return;
    }
    choose(dial, addresses, count);
    try_next(dial);
}

int egress_dial_start(struct egress_dial *dial, const struct target *target)
{
    int64_t timeout_ms = dial->config->connect_timeout_ms;
    dial->port = target->port;
    dial->end_us = clock_monotonic_us() + timeout_ms * 1000;
    int rc = deadline_init(&dial->deadline, dial->base, passed, dial);
    if (rc == 0 && target->is_address) {
        choose(dial, &target->address, 1);
        deadline_start(&dial->deadline, 0);
    } else if (rc == 0) {
        rc =
            resolver_lookup(dial->resolver, target->name, timeout_ms, answered, dial, &dial->query);
    }
    if (rc < 0)
        egress_dial_stop(dial);
    return rc;
}

void egress_dial_stop(struct egress_dial *dial)
{
    drop_socket(dial);
    resolver_cancel(dial->query);
    dial->query = NULL;
    deadline_free(&dial->deadline);
}

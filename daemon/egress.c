/*
 * egress.c - the proxy of one run: its listener and its connections.
 *
 * The listener comes from a provider, which is not trusted with where it listens: it has to be in
 * another network namespace than the daemon's. A connection over the bound is closed at once and
 * counted, and so is everything once the run has used up its bytes. Closed connections are freed at
 * the end of the loop's turn.
 */
#include "daemon/egress.h"

#include "daemon/deadline.h"
#include "daemon/egress_connection.h"
#include "daemon/loop.h"

#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#    define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

#define TURN_ACCEPTS 16
#define PAUSE_MS     100 /* when the process is out of descriptors */

struct egress {
    struct egress_start start;
    struct egress_account account;
    int fd; /* -1: none yet */
    struct event *acceptable, *bury;
    struct deadline pause;
    struct egress_connections open, dead;
    int64_t count; /* of those that are open */
};

static void bury_dead(struct egress *egress)
{
    struct egress_connection *connection;
    while ((connection = TAILQ_FIRST(&egress->dead))) {
        egress_connection_remove(&egress->dead, connection);
        egress_connection_bury(connection);
    }
}

static void close_all(struct egress *egress)
{
    struct egress_connection *connection;
    while ((connection = TAILQ_FIRST(&egress->open)))
        egress_connection_close(connection);
}

static bool is_used_up(const struct egress *egress)
{
    return egress->account.left <= 0;
}

static void end_turn(evutil_socket_t fd, short what, void *context)
{
    struct egress *egress = context;
    (void)fd;
    (void)what;
    if (is_used_up(egress))
        close_all(egress);
    bury_dead(egress);
}

void egress_bury(struct egress *egress, struct egress_connection *connection)
{
    egress_connection_remove(&egress->open, connection);
    egress_connection_insert(&egress->dead, connection);
    egress->count--;
    event_active(egress->bury, EV_TIMEOUT, 1);
}

/* ---- the listener ------------------------------------------------------------------------------- */

static void welcome(struct egress *egress, int fd)
{
    struct egress_connection *connection;
    if (egress->count >= egress->start.config->max_connections || is_used_up(egress)) {
        egress_account_refused(&egress->account);
        (void)close(fd);
        return;
    }
    if (egress_connection_open(egress, &egress->start, &egress->account, fd, &connection) < 0)
        return;
    egress_connection_insert(&egress->open, connection);
    egress->count++;
}

static void accept_some(evutil_socket_t listening, short what, void *context)
{
    struct egress *egress = context;
    (void)what;
    for (int i = 0; i < TURN_ACCEPTS; i++) {
        int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            welcome(egress, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            (void)event_del(egress->acceptable);
            deadline_start(&egress->pause, PAUSE_MS);
        }
        return;
    }
}

static void pause_over(void *context)
{
    struct egress *egress = context;
    if (event_add(egress->acceptable, NULL) != 0)
        deadline_start(&egress->pause, PAUSE_MS);
}

static bool option_is(int fd, int option, int expected)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == expected;
}

static int read_cookie(int fd, uint64_t *out)
{
    socklen_t size = sizeof *out;
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, out, &size) == 0 ? 0 : -errno;
}

/* 0, 1 when it is in our own network namespace, or -errno. */
static int check_namespace(int listener)
{
    uint64_t theirs = 0, ours = 0;
    AR_AUTO_CLOSE int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = own < 0 ? -errno : read_cookie(own, &ours);
    if (rc == 0)
        rc = read_cookie(listener, &theirs);
    return rc == 0 && theirs == ours ? 1 : rc;
}

static int check_listener(int fd)
{
    if (!option_is(fd, SO_DOMAIN, AF_INET) || !option_is(fd, SO_TYPE, SOCK_STREAM) ||
        !option_is(fd, SO_PROTOCOL, IPPROTO_TCP) || !option_is(fd, SO_ACCEPTCONN, 1))
        return 1;
    int rc = check_namespace(fd);
    if (rc != 0)
        return rc;
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return -errno;
    return 0;
}

int egress_listen(struct egress *egress, int listener)
{
    AR_AUTO_CLOSE int fd = listener;
    int rc = egress->fd >= 0 ? 1 : check_listener(fd);
    if (rc != 0)
        return rc;
    egress->acceptable =
        event_new(egress->start.base, fd, EV_READ | EV_PERSIST, accept_some, egress);
    if (!egress->acceptable)
        return -ENOMEM;
    (void)event_priority_set(egress->acceptable, LOOP_PRIORITY_BULK);
    if (event_add(egress->acceptable, NULL) != 0)
        return -ENOMEM;
    egress->fd = base_take_fd(&fd);
    return 0;
}

/* ---- life --------------------------------------------------------------------------------------- */

int egress_new(const struct egress_start *start, struct egress **out)
{
    struct egress *egress = calloc(1, sizeof *egress);
    if (!egress)
        return -ENOMEM;
    egress->start = *start;
    egress->fd = -1;
    TAILQ_INIT(&egress->open);
    TAILQ_INIT(&egress->dead);
    egress->bury = event_new(start->base, -1, 0, end_turn, egress);
    int rc = egress->bury ? egress_account_init(&egress->account, start) : -ENOMEM;
    if (rc == 0)
        rc = deadline_init(&egress->pause, start->base, pause_over, egress);
    if (rc < 0)
        egress_free(egress);
    else
        *out = egress;
    return rc;
}

void egress_usage(const struct egress *egress, struct usage_network *out)
{
    *out = egress->account.totals;
}

json_t *egress_hosts(const struct egress *egress)
{
    const struct text_list *hosts = &egress->start.grant->hosts;
    AR_AUTO_JSON json_t *list = json_array();
    for (size_t i = 0; list && i < hosts->count; i++) {
        const struct egress_use *use = &egress->account.uses[i];
        if (use->connections == 0)
            continue;
        json_t *item =
            json_pack("{s:s, s:I, s:I, s:I}", "host", hosts->items[i], "connections",
                      (json_int_t)use->connections, "bytes_in", (json_int_t)use->bytes_in,
                      "bytes_out", (json_int_t)use->bytes_out);
        if (!item || json_array_append_new(list, item) != 0)
            return NULL;
    }
    return AR_TAKE(list);
}

void egress_free(struct egress *egress)
{
    if (!egress)
        return;
    if (egress->bury)
        close_all(egress);
    bury_dead(egress);
    if (egress->acceptable)
        event_free(egress->acceptable);
    if (egress->bury)
        event_free(egress->bury);
    deadline_free(&egress->pause);
    base_close(&egress->fd);
    egress_account_free(&egress->account);
    free(egress);
}

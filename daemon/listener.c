/*
 * listener.c - the socket that clients connect to.
 *
 * Every connection is identified by the kernel's credentials before a byte of it is read. A peer that
 * matches no [client], or of whom we cannot tell, is answered `forbidden` once and cut off. Over
 * socket.max_connections, or out of descriptors, the listener waits until a session has gone: those
 * that wait in the backlog are served then, and nobody is half served.
 *
 * A socket of the service manager outlives the daemon: it is neither bound, nor given a mode, nor
 * unlinked here.
 */
#include "daemon/listener.h"

#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/peer.h"
#include "daemon/run.h"
#include "daemon/session.h"
#include "daemon/unix_socket.h"
#include "protocol/rpc.h"

#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

#define LISTENER_BACKLOG  512
#define LISTENER_PAUSE_MS 100 /* when the process is out of descriptors */

struct listener {
    struct line *line;
    int fd;
    bool inherited; /* bound by the service manager, whose the socket file is */
    struct event *acceptable;
    struct event *bury;
    struct deadline pause;
    struct session **open;
    int64_t count, room;
    struct session **dead; /* freed at the end of the turn */
    size_t dead_count;
    bool stopped;
    char *path; /* of the socket file, also when the configuration names another by now */
};

/* Both lists have room for max_connections. */
static bool is_full(const struct listener *listener)
{
    return listener->count + (int64_t)listener->dead_count >= listener->room;
}

static void bury_dead(evutil_socket_t fd, short what, void *context)
{
    struct listener *listener = context;
    (void)fd;
    (void)what;
    for (size_t i = 0; i < listener->dead_count; i++)
        session_bury(listener->dead[i]);
    listener->dead_count = 0;
    if (!listener->stopped && !is_full(listener))
        (void)event_add(listener->acceptable, NULL);
}

void listener_add_session(struct listener *listener, struct session *session)
{
    listener->open[listener->count++] = session;
    metrics_count_connection(listener->line, true);
}

void listener_bury_session(struct listener *listener, struct session *session)
{
    for (int64_t i = 0; i < listener->count; i++) {
        if (listener->open[i] != session)
            continue;
        listener->open[i] = listener->open[--listener->count];
        listener->dead[listener->dead_count++] = session;
        metrics_count_connection(listener->line, false);
        event_active(listener->bury, EV_TIMEOUT, 1);
        return;
    }
}

int64_t listener_sessions(const struct listener *listener)
{
    return listener->count;
}

static void forbid(int fd)
{
    size_t length;
    AR_AUTO_FREE char *line = rpc_error_line("null", RPC_FORBIDDEN, NULL, &length);
    if (line && send(fd, line, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        log_debug("a forbidden client has gone before it was told");
    (void)close(fd);
}

static void welcome(struct listener *listener, int fd)
{
    struct peer_client client;
    int rc = peer_identify(fd, listener->line->config, &client);
    if (rc < 0 || !client.policy) {
        log_warning("connection of uid %ld gid %ld pid %ld matches no [client]: forbidden",
                    (long)client.uid, (long)client.gid, (long)client.pid);
        metrics_count_refusal(listener->line, METRICS_FORBIDDEN);
        forbid(fd);
        return;
    }
    if (session_open(listener, listener->line, fd, &client) < 0) {
        metrics_count_refusal(listener->line, METRICS_NO_MEMORY);
        log_error("no memory for a connection");
    }
}

static void accept_one(evutil_socket_t listening, short what, void *context)
{
    struct listener *listener = context;
    (void)what;
    if (is_full(listener)) {
        (void)event_del(listener->acceptable);
        return;
    }
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        welcome(listener, fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        log_warning("cannot accept a connection for now: %m");
        (void)event_del(listener->acceptable);
        deadline_start(&listener->pause, LISTENER_PAUSE_MS);
    }
}

static void pause_over(void *context)
{
    struct listener *listener = context;
    if (!listener->stopped)
        (void)event_add(listener->acceptable, NULL);
}

void listener_rematch(struct listener *listener)
{
    /* Backwards: one that closes is replaced by the last. */
    for (int64_t i = listener->count - 1; i >= 0; i--)
        session_rematch(listener->open[i]);
}

void listener_finish(struct listener *listener)
{
    for (int64_t i = listener->count - 1; i >= 0; i--)
        session_finish(listener->open[i]);
}

bool listener_is_flushed(const struct listener *listener)
{
    for (int64_t i = 0; i < listener->count; i++)
        if (!session_is_flushed(listener->open[i]))
            return false;
    return true;
}

static int make_events(struct listener *listener)
{
    struct event_base *base = listener->line->base;
    listener->acceptable =
        event_new(base, listener->fd, EV_READ | EV_PERSIST, accept_one, listener);
    listener->bury = event_new(base, -1, 0, bury_dead, listener);
    if (!listener->acceptable || !listener->bury ||
        deadline_init(&listener->pause, base, pause_over, listener) < 0)
        return -ENOMEM;
    return event_add(listener->acceptable, NULL) == 0 ? 0 : -ENOMEM;
}

int listener_open(struct line *line, int inherited, struct listener **out)
{
    AR_AUTO_CLOSE int fd = inherited;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return -ENOMEM;
    size_t most = (size_t)line->config->max_connections;
    listener->line = line;
    listener->room = line->config->max_connections;
    listener->inherited = inherited >= 0;
    listener->fd = base_take_fd(&fd);
    listener->open = calloc(most, sizeof(struct session *));
    listener->dead = calloc(most, sizeof(struct session *));
    listener->path = strdup(line->config->socket_path);
    int rc = listener->open && listener->dead && listener->path ? 0 : -ENOMEM;
    if (rc == 0 && !listener->inherited)
        rc = unix_socket_listen(listener->path, (mode_t)line->config->socket_mode, LISTENER_BACKLOG,
                                &listener->fd);
    if (rc == 0)
        rc = make_events(listener);
    if (rc < 0)
        listener_free(listener);
    else
        *out = listener;
    return rc;
}

void listener_stop(struct listener *listener)
{
    listener->stopped = true;
    if (listener->fd < 0)
        return;
    if (listener->acceptable)
        (void)event_del(listener->acceptable);
    if (!listener->inherited)
        (void)unlink(listener->path);
    (void)close(listener->fd);
    listener->fd = -1;
}

void listener_free(struct listener *listener)
{
    if (!listener)
        return;
    listener_stop(listener);
    while (listener->count > 0)
        session_close(listener->open[0]);
    for (size_t i = 0; i < listener->dead_count; i++)
        session_bury(listener->dead[i]);
    free(listener->open);
    free(listener->dead);
    free(listener->path);
    deadline_free(&listener->pause);
    if (listener->acceptable)
        event_free(listener->acceptable);
    if (listener->bury)
        event_free(listener->bury);
    free(listener);
}

/*
 * metrics_server.c - GET /metrics, by libevent's HTTP server in the loop.
 *
 * Whoever scrapes is not trusted to be quick, right or few: headers are bounded, a body is refused, a
 * connection that says nothing is closed, and no more than METRICS_SERVER_CONNECTIONS are open; others
 * wait in the backlog. libevent does not tell when a connection of its server goes. So we hold a
 * reference to the buffers of each, and look from time to time whose callbacks have been taken away.
 * The descriptor is the buffers' (BEV_OPT_CLOSE_ON_FREE), so it stays open as long as they have events
 * on it: one that was closed and given to somebody else would take the other's events along.
 */
#include "daemon/metrics_server.h"

#include "daemon/config.h"
#include "daemon/deadline.h"
#include "daemon/metrics_table.h"
#include "daemon/run.h"
#include "daemon/unix_socket.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event-config.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <string.h>
#include <sys/socket.h>

#define METRICS_SERVER_CONNECTIONS  16
#define METRICS_SERVER_BACKLOG      16
#define METRICS_SERVER_HEADER_BYTES 8192
#define METRICS_SERVER_READ_BYTES   16384 /* are held of a connection, more than the headers */
#define METRICS_SERVER_TIMEOUT_S    5
#define METRICS_SERVER_LOOK_MS      100 /* between looks at who has gone, while there is anybody */
#define OPEN_METRICS_TYPE           "application/openmetrics-text"

_Static_assert(EVENT__NUMERIC_VERSION >= 0x02010c00,
               "before 2.1.12 libevent's server may close descriptors that are its buffers'");

struct metrics_server {
    struct line *line;
    struct evhttp *http;
    char *path; /* of the Unix socket that is bound; NULL: none */
    struct evconnlistener *listeners[2];
    size_t listener_count;
    struct bufferevent *open[METRICS_SERVER_CONNECTIONS];
    size_t open_count;
    struct deadline look;
};

/* ---- connections -------------------------------------------------------------------------------- */

static bool has_gone(struct bufferevent *connection)
{
    bufferevent_event_cb told = NULL;
    bufferevent_getcb(connection, NULL, NULL, &told, NULL);
    return !told;
}

static void forget_gone(struct metrics_server *server)
{
    size_t kept = 0;
    for (size_t i = 0; i < server->open_count; i++) {
        if (has_gone(server->open[i]))
            (void)bufferevent_decref(server->open[i]);
        else
            server->open[kept++] = server->open[i];
    }
    server->open_count = kept;
}

static void accept_more(struct metrics_server *server, bool more)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        if (more)
            (void)evconnlistener_enable(server->listeners[i]);
        else
            (void)evconnlistener_disable(server->listeners[i]);
    }
}

static void look_again(void *context)
{
    struct metrics_server *server = context;
    forget_gone(server);
    accept_more(server, server->open_count < METRICS_SERVER_CONNECTIONS);
    if (server->open_count > 0)
        deadline_start(&server->look, METRICS_SERVER_LOOK_MS);
}

/* The process is out of descriptors, or of memory. */
static void cannot_accept(struct evconnlistener *listener, void *context)
{
    struct metrics_server *server = context;
    (void)listener;
    accept_more(server, false);
    deadline_start(&server->look, METRICS_SERVER_LOOK_MS);
}

/* The buffers of a connection that was accepted. NULL: out of memory, and libevent makes its own. */
static struct bufferevent *make_connection(struct event_base *base, void *context)
{
    struct metrics_server *server = context;
    forget_gone(server); /* before this one, which has no callbacks yet */
    struct bufferevent *connection = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    if (!connection)
        return NULL;
    bufferevent_setwatermark(connection, EV_READ, 0, METRICS_SERVER_READ_BYTES);
    if (server->open_count < METRICS_SERVER_CONNECTIONS) {
        bufferevent_incref(connection);
        server->open[server->open_count++] = connection;
    }
    if (server->open_count == METRICS_SERVER_CONNECTIONS)
        accept_more(server, false);
    if (!deadline_is_running(&server->look))
        deadline_start(&server->look, METRICS_SERVER_LOOK_MS);
    return connection;
}

/* ---- requests ----------------------------------------------------------------------------------- */

/* Does the list of media types ask for OpenMetrics, and not only to say that it will not do (q=0)? */
static bool wants_open_metrics(const char *accept)
{
    const char *found = accept ? strcasestr(accept, OPEN_METRICS_TYPE) : NULL;
    if (!found)
        return false;
    size_t length = strcspn(found, ",");
    const char *weight = strcasestr(found, "q=");
    return !weight || weight >= found + length || strtod(weight + 2, NULL) > 0;
}

static void answer(struct evhttp_request *request, int code, const char *reason,
                   struct evbuffer *body)
{
    struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
    if (code == HTTP_BADMETHOD)
        (void)evhttp_add_header(headers, "Allow", "GET");
    evhttp_send_reply(request, code, reason, body);
}

static void answer_metrics(struct metrics_server *server, struct evhttp_request *request)
{
    const char *accept = evhttp_find_header(evhttp_request_get_input_headers(request), "Accept");
    struct exposition exposition = {.out = evbuffer_new(),
                                    .open_metrics = wants_open_metrics(accept)};
    const char *type = exposition.open_metrics ? OPEN_METRICS_TYPE "; version=1.0.0; charset=utf-8"
                                               : "text/plain; version=0.0.4; charset=utf-8";
    if (exposition.out)
        metrics_table_write(server->line, &exposition);
    if (!exposition.out || exposition_end(&exposition) < 0 ||
        evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type) != 0)
        answer(request, HTTP_INTERNAL, "Internal Server Error", NULL);
    else
        answer(request, HTTP_OK, "OK", exposition.out);
    if (exposition.out)
        evbuffer_free(exposition.out);
}

static void serve(struct evhttp_request *request, void *context)
{
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    if (!path || strcmp(path, "/metrics") != 0)
        answer(request, HTTP_NOTFOUND, "Not Found", NULL);
    else if (evhttp_request_get_command(request) != EVHTTP_REQ_GET)
        answer(request, HTTP_BADMETHOD, "Method Not Allowed", NULL);
    else
        answer_metrics(context, request);
}

/* ---- sockets ------------------------------------------------------------------------------------ */

static int listen_on_address(const char *text, int *out)
{
    struct sockaddr_storage address;
    int length = sizeof address, yes = 1;
    if (evutil_parse_sockaddr_port(text, (struct sockaddr *)&address, &length) != 0)
        return -EINVAL;
    AR_AUTO_CLOSE int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        bind(fd, (const struct sockaddr *)&address, (socklen_t)length) != 0 ||
        listen(fd, METRICS_SERVER_BACKLOG) != 0)
        return -errno;
    *out = base_take_fd(&fd);
    return 0;
}

/* Takes over the descriptor. */
static int add_socket(struct metrics_server *server, int fd)
{
    struct evhttp_bound_socket *bound = evhttp_accept_socket_with_handle(server->http, fd);
    if (!bound) {
        (void)close(fd);
        return -ENOMEM;
    }
    struct evconnlistener *listener = evhttp_bound_socket_get_listener(bound);
    evconnlistener_set_error_cb(listener, cannot_accept);
    server->listeners[server->listener_count++] = listener;
    return 0;
}

static int bind_all(struct metrics_server *server, const char **where)
{
    const struct config_metrics *config = &server->line->config->metrics;
    int fd = -1, rc = 0;
    if (config->socket) {
        *where = config->socket;
        rc = unix_socket_listen(config->socket, (mode_t)config->mode, METRICS_SERVER_BACKLOG, &fd);
        rc = rc < 0 ? rc : add_socket(server, fd);
        server->path = rc == 0 ? strdup(config->socket) : NULL;
    }
    if (rc == 0 && config->listen) {
        *where = config->listen;
        rc = listen_on_address(config->listen, &fd);
        rc = rc < 0 ? rc : add_socket(server, fd);
    }
    return rc;
}

static int make_http(struct metrics_server *server)
{
    server->http = evhttp_new(server->line->base);
    if (!server->http)
        return -ENOMEM;
    evhttp_set_bevcb(server->http, make_connection, server);
    evhttp_set_gencb(server->http, serve, server);
    evhttp_set_timeout(server->http, METRICS_SERVER_TIMEOUT_S);
    evhttp_set_max_headers_size(server->http, METRICS_SERVER_HEADER_BYTES);
    evhttp_set_max_body_size(server->http, 0);
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                                 EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    return deadline_init(&server->look, server->line->base, look_again, server);
}

int metrics_server_open(struct line *line, struct metrics_server **out, const char **where)
{
    *out = NULL;
    *where = "";
    if (!line->config->metrics.socket && !line->config->metrics.listen)
        return 0;
    struct metrics_server *server = calloc(1, sizeof *server);
    if (!server)
        return -ENOMEM;
    server->line = line;
    int rc = make_http(server);
    if (rc == 0)
        rc = bind_all(server, where);
    if (rc < 0)
        metrics_server_free(server);
    else
        *out = server;
    return rc;
}

void metrics_server_free(struct metrics_server *server)
{
    if (!server)
        return;
    if (server->path)
        (void)unlink(server->path);
    free(server->path);
    if (server->http)
        evhttp_free(server->http);
    for (size_t i = 0; i < server->open_count; i++)
        (void)bufferevent_decref(server->open[i]);
    deadline_free(&server->look);
    free(server);
}

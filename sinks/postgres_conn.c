/*
 * postgres_conn.c - see postgres_conn.h.
 *
 * The states go down -> resolving -> connecting -> preparing -> ready, and from each of them back to
 * down, at first through a pause. There is one event for the socket, made anew whenever libpq may have taken
 * another socket, and one timer: the limit of an attempt, or the pause.
 */
#include "sinks/postgres_conn.h"

#include "sinks/postgres_hosts.h"

#include <event2/event.h>
#include <event2/util.h>
#include <string.h>

#define CONNECT_LIMIT_MS 10000
#define PAUSE_FIRST_MS   100
#define PAUSE_LONGEST_MS 5000

enum state { DOWN, PAUSED, RESOLVING, CONNECTING, PREPARING, READY };

struct postgres_conn {
    struct event_base *base;
    struct postgres_conn_plan plan; /* conninfo is owned */
    enum state state;
    struct postgres_hosts *hosts; /* while resolving */
    PGconn *pg;
    struct event *readable, *writable; /* of the socket of pg; NULL without */
    struct event *timer;
    int pause_ms; /* the next pause */
    bool warned;
    bool refused;    /* while preparing: the server said no */
    unsigned syncs;  /* how many have not come back */
    unsigned closed; /* how often it was: tells whether this is still the same connection */
};

/* Settings of the session. What a backend waits for must end although nobody waits any more. The
 * second statement sets what only newer servers have. */
static const char *const session_sql[] = {
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false), "
    "pg_catalog.set_config('lock_timeout', '10s', false), "
    "pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', false)",
    "SELECT pg_catalog.set_config(name, '2000', false) FROM pg_catalog.pg_settings "
    "WHERE name = 'client_connection_check_interval'",
};

static void connect_now(struct postgres_conn *conn);

/* ---- closing -------------------------------------------------------------------------------- */

static void free_event(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

void postgres_conn_drop(struct postgres_conn *conn)
{
    free_event(&conn->readable);
    free_event(&conn->writable);
    (void)evtimer_del(conn->timer);
    postgres_hosts_free(conn->hosts);
    conn->hosts = NULL;
    PQfinish(conn->pg);
    conn->pg = NULL;
    conn->syncs = 0;
    conn->closed++;
    conn->state = DOWN;
}

static void set_timer(struct postgres_conn *conn, int ms)
{
    struct timeval in = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000};
    if (evtimer_add(conn->timer, &in) < 0)
        abort();
}

/* Between half the pause and all of it, so that daemons do not come back all at once. */
static int spread(int ms)
{
    unsigned short random;
    evutil_secure_rng_get_bytes(&random, sizeof(random));
    return ms / 2 + (int)random % (ms / 2 + 1);
}

void postgres_conn_fail(struct postgres_conn *conn)
{
    postgres_conn_drop(conn);
    conn->state = PAUSED;
    set_timer(conn, spread(conn->pause_ms));
    conn->pause_ms = conn->pause_ms * 2 > PAUSE_LONGEST_MS ? PAUSE_LONGEST_MS : conn->pause_ms * 2;
    conn->plan.events->lost(conn->plan.context);
}

static void timer_fired(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_conn *conn = context;
    if (conn->state != PAUSED) {
        postgres_conn_fail(conn); /* connecting has taken too long */
        return;
    }
    conn->state = DOWN;
    connect_now(conn);
}

/* ---- results -------------------------------------------------------------------------------- */

static bool is_success(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static void take_sync(struct postgres_conn *conn)
{
    conn->syncs--;
    if (conn->state == READY) {
        conn->plan.events->synced(conn->plan.context);
        return;
    }
    if (conn->refused) {
        postgres_conn_fail(conn);
        return;
    }
    (void)evtimer_del(conn->timer);
    conn->state = READY;
    conn->pause_ms = PAUSE_FIRST_MS;
    conn->plan.events->ready(conn->plan.context);
}

static void take_result(struct postgres_conn *conn, const PGresult *result)
{
    if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
        take_sync(conn);
    else if (conn->state == READY)
        conn->plan.events->result(conn->plan.context, result);
    else if (!is_success(result))
        conn->refused = true;
}

/* Takes what has come, as long as something is awaited and the connection is the same. */
static void take_results(struct postgres_conn *conn)
{
    unsigned closed = conn->closed;
    while (conn->closed == closed && conn->syncs > 0 && !PQisBusy(conn->pg)) {
        PGresult *result = PQgetResult(conn->pg);
        if (result)
            take_result(conn, result);
        else if (PQstatus(conn->pg) == CONNECTION_BAD)
            postgres_conn_fail(conn);
        PQclear(result);
    }
    if (conn->closed == closed && PQstatus(conn->pg) == CONNECTION_BAD)
        postgres_conn_fail(conn);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void flush(struct postgres_conn *conn)
{
    int left = PQflush(conn->pg);
    if (left < 0)
        postgres_conn_fail(conn);
    else if (left > 0 && event_add(conn->writable, NULL) < 0)
        abort();
}

static void become_readable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_conn *conn = context;
    unsigned closed = conn->closed;
    bool alive = PQconsumeInput(conn->pg) == 1;
    take_results(conn);
    if (conn->closed != closed)
        return;
    if (alive)
        flush(conn); /* reading may have made room for what is to be sent */
    else
        postgres_conn_fail(conn);
}

static void become_writable(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    flush(context);
}

static int watch_socket(struct postgres_conn *conn)
{
    int fd = PQsocket(conn->pg);
    free_event(&conn->readable);
    free_event(&conn->writable);
    conn->readable = event_new(conn->base, fd, EV_READ | EV_PERSIST, become_readable, conn);
    conn->writable = event_new(conn->base, fd, EV_WRITE, become_writable, conn);
    if (!conn->readable || !conn->writable || event_add(conn->readable, NULL) < 0)
        return -ENOMEM;
    return 0;
}

void postgres_conn_sync(struct postgres_conn *conn)
{
    if (!PQpipelineSync(conn->pg)) {
        postgres_conn_fail(conn);
        return;
    }
    conn->syncs++;
    flush(conn);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static void take_notice(void *context, const PGresult *result)
{
    struct postgres_conn *conn = context;
    static const char *const harmless[] = {"DEBUG", "INFO", "NOTICE", "LOG"};
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    for (size_t i = 0; severity && i < AR_COUNT(harmless); i++)
        if (strcmp(severity, harmless[i]) == 0)
            return;
    conn->warned = true;
}

static bool send_preparation(struct postgres_conn *conn)
{
    for (size_t i = 0; i < AR_COUNT(session_sql); i++)
        if (!PQsendQueryParams(conn->pg, session_sql[i], 0, NULL, NULL, NULL, NULL, 0))
            return false;
    for (size_t i = 0; i < conn->plan.statement_count; i++) {
        const struct postgres_conn_statement *statement = &conn->plan.statements[i];
        if (!PQsendPrepare(conn->pg, statement->name, statement->sql, 0, NULL))
            return false;
    }
    return true;
}

static void connected(struct postgres_conn *conn)
{
    conn->state = PREPARING;
    conn->refused = false;
    conn->warned = false;
    (void)PQsetNoticeReceiver(conn->pg, take_notice, conn);
    if (watch_socket(conn) < 0 || PQsetnonblocking(conn->pg, 1) != 0 ||
        !PQenterPipelineMode(conn->pg) || !send_preparation(conn))
        postgres_conn_fail(conn);
    else
        postgres_conn_sync(conn);
}

static void poll_again(evutil_socket_t fd, short what, void *context);

static void wait_for_poll(struct postgres_conn *conn, short what)
{
    free_event(&conn->readable);
    conn->readable = event_new(conn->base, PQsocket(conn->pg), what, poll_again, conn);
    if (!conn->readable || event_add(conn->readable, NULL) < 0)
        postgres_conn_fail(conn);
}

static void poll_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_conn *conn = context;
    /* libpq may close the socket and take another: no event may be left on the old one. */
    free_event(&conn->readable);
    switch (PQconnectPoll(conn->pg)) {
    case PGRES_POLLING_READING:
        wait_for_poll(conn, EV_READ);
        return;
    case PGRES_POLLING_WRITING:
        wait_for_poll(conn, EV_WRITE);
        return;
    case PGRES_POLLING_OK:
        connected(conn);
        return;
    default:
        postgres_conn_fail(conn);
    }
}

/* What stands before dbname can be said otherwise in the connection string, what stands after it
 * can not. A server that takes no writes is not the one to ask. lists may be NULL. */
static PGconn *start(const char *conninfo, const struct postgres_hosts_lists *lists)
{
    const char *const names[] = {"fallback_application_name",
                                 "target_session_attrs",
                                 "keepalives_idle",
                                 "tcp_user_timeout",
                                 "dbname",
                                 "client_encoding",
                                 lists ? "host" : NULL, /* the list of names ends with NULL */
                                 "hostaddr",
                                 "port",
                                 NULL};
    const char *const values[] = {"auditrund",
                                  "read-write",
                                  "30",
                                  "30000",
                                  conninfo,
                                  "UTF8",
                                  lists ? lists->host : NULL,
                                  lists ? lists->hostaddr : NULL,
                                  lists ? lists->port : NULL,
                                  NULL};
    return PQconnectStartParams(names, values, 1);
}

static void connect_to(struct postgres_conn *conn, const struct postgres_hosts_lists *lists)
{
    conn->state = CONNECTING;
    conn->pg = start(conn->plan.conninfo, lists);
    if (!conn->pg || PQstatus(conn->pg) == CONNECTION_BAD)
        postgres_conn_fail(conn);
    else
        wait_for_poll(conn, EV_WRITE);
}

static void resolved(void *context, const struct postgres_hosts_lists *lists)
{
    struct postgres_conn *conn = context;
    if (lists)
        connect_to(conn, lists);
    else
        postgres_conn_fail(conn);
}

static void connect_now(struct postgres_conn *conn)
{
    conn->state = RESOLVING;
    set_timer(conn, CONNECT_LIMIT_MS);
    int rc = postgres_hosts_find(conn->base, conn->plan.conninfo, resolved, conn, &conn->hosts);
    if (rc == 1)
        connect_to(conn, NULL);
    else if (rc < 0)
        postgres_conn_fail(conn);
}

void postgres_conn_open(struct postgres_conn *conn)
{
    if (conn->state == DOWN)
        connect_now(conn);
}

void postgres_conn_hurry(struct postgres_conn *conn)
{
    if (conn->state == PAUSED)
        postgres_conn_drop(conn);
    postgres_conn_open(conn);
}

/* ---- the rest ------------------------------------------------------------------------------- */

bool postgres_conn_is_ready(const struct postgres_conn *conn)
{
    return conn->state == READY;
}

PGconn *postgres_conn_pg(const struct postgres_conn *conn)
{
    return conn->pg;
}

bool postgres_conn_has_warned(const struct postgres_conn *conn)
{
    return conn->warned;
}

void postgres_conn_forget_warnings(struct postgres_conn *conn)
{
    conn->warned = false;
}

int postgres_conn_new(struct event_base *base, const struct postgres_conn_plan *plan,
                      struct postgres_conn **out)
{
    struct postgres_conn *conn = calloc(1, sizeof(*conn));
    if (!conn)
        return -ENOMEM;
    conn->base = base;
    conn->plan = *plan;
    conn->plan.conninfo = strdup(plan->conninfo);
    conn->pause_ms = PAUSE_FIRST_MS;
    conn->timer = evtimer_new(base, timer_fired, conn);
    if (!conn->plan.conninfo || !conn->timer) {
        postgres_conn_free(conn);
        return -ENOMEM;
    }
    *out = conn;
    return 0;
}

void postgres_conn_free(struct postgres_conn *conn)
{
    if (!conn)
        return;
    if (conn->timer)
        postgres_conn_drop(conn);
    free_event(&conn->timer);
    free((void *)conn->plan.conninfo);
    free(conn);
}

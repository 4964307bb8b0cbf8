/*
 * postgres_conn.c - see postgres_conn.h.
 *
 * The states go down -> resolving -> connecting -> preparing -> ready. What fails before ready goes
 * on with the next address or host; the end of a round, and a connection that is lost, go back to
 * down through a pause. There is one event for the socket, made anew whenever libpq may have taken
 * another socket, and one timer: the limit of an attempt, or the pause.
 */
#include "sinks/postgres_conn.h"

#include "sinks/postgres_hosts.h"
#include "sinks/postgres_settings.h"

#include <event2/event.h>
#include <event2/util.h>
#include <string.h>

#define PAUSE_FIRST_MS   100
#define PAUSE_LONGEST_MS 5000

enum state { DOWN, PAUSED, RESOLVING, CONNECTING, PREPARING, READY };

struct postgres_conn {
    struct event_base *base;
    struct postgres_conn_plan plan;
    struct postgres_settings *settings;
    enum state state;
    /* Of the round: */
    size_t host, address;            /* what is tried; the address: of the host's name */
    size_t tried;                    /* hosts that are done with */
    struct postgres_hosts **lookups; /* one a host, or NULL; one that hangs is kept for later */
    /* Of the attempt: */
    PGconn *pg;
    struct event *readable, *writable; /* of the socket of pg; NULL without */
    struct event *timer;
    ConnStatusType last; /* before libpq was asked to go on */
    bool warned;
    bool refused;    /* while preparing: the server said no */
    unsigned syncs;  /* how many have not come back */
    unsigned closed; /* how often it was: tells whether this is still the same attempt */
    int pause_ms;    /* the next pause */
    enum postgres_problem worst;   /* of the round, or of what was sent last */
    enum postgres_problem problem; /* what is told */
};

/* Settings of the session. Nothing in it may cut a COMMIT short or make it less than durable,
 * whatever is set for the role or the database; but what a backend waits for otherwise must end
 * although nobody waits any more. The second statement sets what only newer servers have. */
static const char *const session_sql[] = {
    "SELECT pg_catalog.set_config('search_path', 'pg_catalog', false), "
    "pg_catalog.set_config('lock_timeout', '10s', false), "
    "pg_catalog.set_config('statement_timeout', '0', false), "
    "pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', false), "
    "pg_catalog.set_config('synchronous_commit', CASE pg_catalog.current_setting("
    "'synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)",
    "SELECT pg_catalog.set_config(name, CASE name WHEN 'client_connection_check_interval' "
    "THEN '2000' ELSE '0' END, false) FROM pg_catalog.pg_settings WHERE name IN "
    "('client_connection_check_interval', 'transaction_timeout', 'idle_session_timeout')",
};

static void try_rest(struct postgres_conn *conn);
static bool next_host(struct postgres_conn *conn);

/* ---- problems ------------------------------------------------------------------------------- */

static void note(struct postgres_conn *conn, enum postgres_problem problem)
{
    if (problem > conn->worst)
        conn->worst = problem;
}

void postgres_conn_blame(struct postgres_conn *conn, enum postgres_problem problem)
{
    note(conn, problem);
}

const char *postgres_conn_problem(const struct postgres_conn *conn)
{
    return conn->problem == POSTGRES_FINE ? NULL : postgres_problem_word(conn->problem);
}

/* A row that is refused says nothing of the server. */
static void note_result(struct postgres_conn *conn, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    enum postgres_problem problem = state ? postgres_problem_of_state(state) : POSTGRES_LOST;
    if (problem != POSTGRES_REFUSED || conn->state != READY)
        note(conn, problem);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void free_event(struct event **event)
{
    if (*event)
        event_free(*event);
    *event = NULL;
}

/* What was tried is over: nothing of it comes any more. */
static void end_attempt(struct postgres_conn *conn)
{
    free_event(&conn->readable);
    free_event(&conn->writable);
    (void)evtimer_del(conn->timer);
    PQfinish(conn->pg);
    conn->pg = NULL;
    conn->syncs = 0;
    conn->closed++;
}

void postgres_conn_drop(struct postgres_conn *conn)
{
    if (conn->state == READY)
        conn->problem = conn->worst == POSTGRES_FINE ? POSTGRES_TIMED_OUT : conn->worst;
    end_attempt(conn);
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
    if (conn->worst == POSTGRES_FINE)
        conn->worst = POSTGRES_LOST;
    if (conn->state == READY &&
        (conn->worst == POSTGRES_READ_ONLY || conn->worst == POSTGRES_UNAVAILABLE))
        (void)next_host(conn);
    conn->problem = conn->worst;
    end_attempt(conn);
    conn->state = PAUSED;
    set_timer(conn, spread(conn->pause_ms));
    conn->pause_ms = conn->pause_ms * 2 > PAUSE_LONGEST_MS ? PAUSE_LONGEST_MS : conn->pause_ms * 2;
    conn->plan.events->lost(conn->plan.context);
}

/* What has failed before it was ready is no loss: there may be more to try. */
static void break_off(struct postgres_conn *conn, enum postgres_problem problem)
{
    note(conn, problem);
    if (conn->state == READY) {
        postgres_conn_fail(conn);
        return;
    }
    end_attempt(conn);
    if (conn->state != RESOLVING || next_host(conn))
        try_rest(conn);
    else
        postgres_conn_fail(conn);
}

static void begin_round(struct postgres_conn *conn)
{
    conn->tried = 0;
    conn->address = 0;
    conn->worst = POSTGRES_FINE;
    try_rest(conn);
}

static void timer_fired(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_conn *conn = context;
    if (conn->state == PAUSED)
        begin_round(conn);
    else
        break_off(conn, POSTGRES_TIMED_OUT);
}

/* ---- results -------------------------------------------------------------------------------- */

static bool is_success(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* A name that is still asked for is not forgotten: its thread could not be ended. */
static void forget_answer(struct postgres_conn *conn, size_t host)
{
    if (!conn->lookups[host] || !postgres_hosts_answer(conn->lookups[host]))
        return;
    postgres_hosts_free(conn->lookups[host]);
    conn->lookups[host] = NULL;
}

static void become_ready(struct postgres_conn *conn)
{
    for (size_t i = 0; i < postgres_settings_hosts(conn->settings); i++)
        forget_answer(conn, i); /* they may be wrong when they are wanted again */
    (void)evtimer_del(conn->timer);
    conn->state = READY;
    conn->pause_ms = PAUSE_FIRST_MS;
    conn->worst = POSTGRES_FINE;
    if (conn->problem != POSTGRES_FULL)
        conn->problem = POSTGRES_FINE;
    conn->plan.events->ready(conn->plan.context);
}

static void take_sync(struct postgres_conn *conn)
{
    conn->syncs--;
    if (conn->state == READY)
        conn->plan.events->synced(conn->plan.context);
    else if (conn->refused)
        break_off(conn, POSTGRES_FINE); /* its problem has been noted */
    else
        become_ready(conn);
}

static void take_result(struct postgres_conn *conn, const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_PIPELINE_SYNC) {
        take_sync(conn);
        return;
    }
    if (status == PGRES_FATAL_ERROR)
        note_result(conn, result);
    if (conn->state != READY) {
        conn->refused = conn->refused || !is_success(result);
        return;
    }
    /* libpq takes a result that it may not change. */
    if (strcmp(PQcmdStatus((PGresult *)(uintptr_t)result), "COMMIT") == 0)
        conn->problem = POSTGRES_FINE;
    conn->plan.events->result(conn->plan.context, result);
}

/* Takes what has come, as long as something is awaited and the connection is the same. */
static void take_results(struct postgres_conn *conn)
{
    unsigned closed = conn->closed;
    /* libpq looks at what has come when it is asked whether it is busy, also when nothing was sent. */
    while (conn->closed == closed && !PQisBusy(conn->pg) && conn->syncs > 0) {
        PGresult *result = PQgetResult(conn->pg);
        if (result)
            take_result(conn, result);
        else if (PQstatus(conn->pg) == CONNECTION_BAD)
            break_off(conn, POSTGRES_LOST);
        PQclear(result);
    }
    if (conn->closed == closed && PQstatus(conn->pg) == CONNECTION_BAD)
        break_off(conn, POSTGRES_LOST);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static void flush(struct postgres_conn *conn)
{
    int left = PQflush(conn->pg);
    if (left < 0)
        break_off(conn, POSTGRES_LOST);
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
        break_off(conn, POSTGRES_LOST);
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
    if (conn->state == READY && conn->syncs == 0)
        conn->worst = POSTGRES_FINE;
    if (!PQpipelineSync(conn->pg)) {
        break_off(conn, POSTGRES_LOST);
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
    if (severity && strcmp(severity, "WARNING") != 0)
        note_result(conn, result); /* why the server ends a session in which nothing was asked */
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
    set_timer(conn, postgres_settings_limit_ms(conn->settings));
    if (watch_socket(conn) < 0 || PQsetnonblocking(conn->pg, 1) != 0 ||
        !PQenterPipelineMode(conn->pg) || !send_preparation(conn))
        break_off(conn, POSTGRES_LOST);
    else
        postgres_conn_sync(conn);
}

static void poll_again(evutil_socket_t fd, short what, void *context);

static bool wait_for_poll(struct postgres_conn *conn, short what)
{
    free_event(&conn->readable);
    conn->readable = event_new(conn->base, PQsocket(conn->pg), what, poll_again, conn);
    return conn->readable && event_add(conn->readable, NULL) == 0;
}

static enum postgres_problem why_not_connected(const struct postgres_conn *conn)
{
    return postgres_problem_of_message(PQerrorMessage(conn->pg), conn->last);
}

static void poll_again(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_conn *conn = context;
    /* libpq may close the socket and take another: no event may be left on the old one. */
    free_event(&conn->readable);
    conn->last = PQstatus(conn->pg);
    PostgresPollingStatusType status = PQconnectPoll(conn->pg);
    if (status == PGRES_POLLING_OK)
        connected(conn);
    else if (status != PGRES_POLLING_READING && status != PGRES_POLLING_WRITING)
        break_off(conn, why_not_connected(conn));
    else if (!wait_for_poll(conn, status == PGRES_POLLING_READING ? EV_READ : EV_WRITE))
        break_off(conn, POSTGRES_LOST);
}

/* ---- a round of all hosts ------------------------------------------------------------------- */

/* True when it is under way; address: NULL for a host without a name to resolve. */
static bool try_address(struct postgres_conn *conn, const char *address)
{
    conn->state = CONNECTING;
    conn->last = CONNECTION_NEEDED;
    conn->pg = postgres_settings_start(conn->settings, conn->host, address);
    if (PQstatus(conn->pg) == CONNECTION_BAD) {
        note(conn, conn->pg ? why_not_connected(conn) : POSTGRES_LOST);
        end_attempt(conn);
        return false;
    }
    /* Of an error its SQLSTATE is enough: what a server says is not for us to repeat. */
    (void)PQsetErrorVerbosity(conn->pg, PQERRORS_SQLSTATE);
    (void)PQsetNoticeReceiver(conn->pg, take_notice, conn);
    set_timer(conn, postgres_settings_limit_ms(conn->settings));
    if (wait_for_poll(conn, EV_WRITE))
        return true;
    end_attempt(conn);
    return false;
}

/* A name that was resolved while nobody waited for it is used in the next round. */
static void resolved(void *context, struct postgres_hosts *hosts)
{
    struct postgres_conn *conn = context;
    if (conn->state != RESOLVING || hosts != conn->lookups[conn->host])
        return;
    (void)evtimer_del(conn->timer);
    try_rest(conn);
}

static bool try_name(struct postgres_conn *conn, const char *name)
{
    struct postgres_hosts **lookup = &conn->lookups[conn->host];
    if (!*lookup && postgres_hosts_ask(conn->base, name, resolved, conn, lookup) < 0) {
        note(conn, POSTGRES_UNKNOWN_NAME);
        return false;
    }
    const struct postgres_hosts_answer *answer = postgres_hosts_answer(*lookup);
    if (!answer) {
        conn->state = RESOLVING;
        set_timer(conn, postgres_settings_limit_ms(conn->settings));
        return true;
    }
    if (answer->count == 0)
        note(conn, POSTGRES_UNKNOWN_NAME);
    while (conn->address < answer->count)
        if (try_address(conn, answer->addresses[conn->address++]))
            return true;
    return false;
}

/* What is left to try of the host: true when something is under way. */
static bool try_host(struct postgres_conn *conn)
{
    const char *name = postgres_settings_name(conn->settings, conn->host);
    if (name)
        return try_name(conn, name);
    return conn->address++ == 0 && try_address(conn, NULL);
}

/* Leaves the host for the next one; false when that ends the round. */
static bool next_host(struct postgres_conn *conn)
{
    size_t count = postgres_settings_hosts(conn->settings);
    forget_answer(conn, conn->host);
    conn->host = (conn->host + 1) % count;
    conn->address = 0;
    conn->tried++;
    return conn->tried < count;
}

static void try_rest(struct postgres_conn *conn)
{
    do {
        if (try_host(conn))
            return;
    } while (next_host(conn));
    postgres_conn_fail(conn);
}

void postgres_conn_open(struct postgres_conn *conn)
{
    if (conn->state == DOWN)
        begin_round(conn);
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
    conn->plan.conninfo = NULL;
    conn->pause_ms = PAUSE_FIRST_MS;
    conn->timer = evtimer_new(base, timer_fired, conn);
    int rc = conn->timer ? postgres_settings_new(plan->conninfo, &conn->settings) : -ENOMEM;
    if (rc == 0) {
        conn->lookups =
            calloc(postgres_settings_hosts(conn->settings), sizeof(struct postgres_hosts *));
        rc = conn->lookups ? 0 : -ENOMEM;
    }
    if (rc < 0) {
        postgres_conn_free(conn);
        return rc;
    }
    *out = conn;
    return 0;
}

static void free_lookups(struct postgres_conn *conn)
{
    for (size_t i = 0; conn->lookups && i < postgres_settings_hosts(conn->settings); i++)
        postgres_hosts_free(conn->lookups[i]);
    free(conn->lookups);
}

void postgres_conn_free(struct postgres_conn *conn)
{
    if (!conn)
        return;
    if (conn->timer)
        postgres_conn_drop(conn);
    free_event(&conn->timer);
    free_lookups(conn);
    postgres_settings_free(conn->settings);
    free(conn);
}

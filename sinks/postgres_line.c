/*
 * postgres_line.c - see postgres_line.h.
 */
#include "sinks/postgres_line.h"

#include "sinks/postgres_ask.h"
#include "sinks/postgres_sql.h"

#include <event2/event.h>
#include <string.h>

/* What the sync that is awaited ends. */
enum phase {
    PHASE_LEARNING,   /* the types of the database, before the first question */
    PHASE_ASKED,      /* the question itself */
    PHASE_COMMITTING, /* COMMIT of a batch */
    PHASE_CLEANING    /* ROLLBACK */
};

struct postgres_line {
    struct postgres_conn *conn;
    bool learns;        /* it sends rows */
    bool learned;       /* from this connection */
    struct event *kick; /* active: look at what is waiting */
    struct operation_list waiting;
    struct operation_list active; /* what is asked now: one, or several claims */
    /* Of what is active: */
    struct postgres_ask ask;
    enum phase phase;
    bool suspect;        /* the connection is not to be used again */
    bool in_transaction; /* BEGIN was answered, its end was not */
};

/* ---- asking --------------------------------------------------------------------------------- */

static void finish_list(struct operation_list *list)
{
    struct operation *operation;
    while ((operation = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, operation, link);
        operation_finish(operation);
    }
}

static void finish_active(struct postgres_line *line)
{
    finish_list(&line->active);
    event_active(line->kick, 0, 0);
}

static void begin_phase(struct postgres_line *line, enum phase phase)
{
    line->phase = phase;
    postgres_conn_forget_warnings(line->conn);
}

static void take_waiting(struct postgres_line *line)
{
    struct operation *operation;
    size_t count = 0;
    while ((operation = TAILQ_FIRST(&line->waiting)) &&
           postgres_ask_joins(&line->active, count++, operation)) {
        TAILQ_REMOVE(&line->waiting, operation, link);
        TAILQ_INSERT_TAIL(&line->active, operation, link);
    }
}

static void ask(struct postgres_line *line)
{
    if (postgres_ask_begin(&line->ask, &line->active) != 0) {
        finish_active(line);
        return;
    }
    begin_phase(line, PHASE_ASKED);
    if (postgres_ask_send(&line->ask, postgres_conn_pg(line->conn)))
        postgres_conn_sync(line->conn);
    else
        postgres_conn_fail(line->conn);
}

/* What rows are made of has to be known first; it is asked with an operation under way, whose deadline
 * holds for that as well. */
static void start(struct postgres_line *line)
{
    take_waiting(line);
    line->suspect = false;
    line->in_transaction = false;
    line->ask.problem = POSTGRES_FINE;
    if (!line->learns || line->learned) {
        ask(line);
        return;
    }
    begin_phase(line, PHASE_LEARNING);
    if (PQsendQueryPrepared(postgres_conn_pg(line->conn), POSTGRES_SQL_TYPES, 0, NULL, NULL, NULL,
                            0))
        postgres_conn_sync(line->conn);
    else
        postgres_conn_fail(line->conn);
}

static void look(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    struct postgres_line *line = context;
    const struct operation *first = TAILQ_FIRST(&line->waiting);
    if (!TAILQ_EMPTY(&line->active) || !first)
        return;
    if (postgres_conn_is_ready(line->conn))
        start(line);
    else if (first->kind == QUESTION_PROBE)
        postgres_conn_hurry(line->conn);
    else
        postgres_conn_open(line->conn);
}

/* ---- events of the connection --------------------------------------------------------------- */

static void ready(void *context)
{
    struct postgres_line *line = context;
    line->learned = false;
    look(-1, 0, line);
}

/* What was under way has the answer that it had when the connection went. Probes that wait have
 * theirs with that; the others may still be served by the next connection. */
static void lost(void *context)
{
    struct postgres_line *line = context;
    struct operation *operation = TAILQ_FIRST(&line->waiting);
    while (operation) {
        struct operation *next = TAILQ_NEXT(operation, link);
        if (operation->kind == QUESTION_PROBE) {
            TAILQ_REMOVE(&line->waiting, operation, link);
            operation_finish(operation);
        }
        operation = next;
    }
    finish_active(line);
}

/* libpq takes a result that it may not change. */
static const char *tag_of(const PGresult *result)
{
    return PQcmdStatus((PGresult *)(uintptr_t)result);
}

static void follow_transaction(struct postgres_line *line, const PGresult *result)
{
    const char *tag = tag_of(result);
    if (strcmp(tag, "BEGIN") == 0)
        line->in_transaction = true;
    else if (strcmp(tag, "COMMIT") == 0 || strcmp(tag, "ROLLBACK") == 0)
        line->in_transaction = false;
}

static void take_commit(struct postgres_line *line, const PGresult *result)
{
    struct answer *answer = &TAILQ_FIRST(&line->active)->answer;
    if (strcmp(tag_of(result), "COMMIT") != 0)
        answer->outcome = SINK_NOT_STORED; /* the transaction was rolled back instead */
    else if (!postgres_conn_has_warned(line->conn))
        answer->outcome = SINK_STORED;
}

/* Only an ERROR of the server says that COMMIT was not carried out; the end of the session, or what
 * libpq itself finds (neither has this severity), leaves it unknown. */
static bool leaves_unknown(const struct postgres_line *line, const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    return line->phase == PHASE_COMMITTING && (!severity || strcmp(severity, "ERROR") != 0);
}

static void take_failure(struct postgres_line *line, const PGresult *result)
{
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED)
        return; /* follows on a failure that has been taken */
    if (line->phase == PHASE_LEARNING || line->phase == PHASE_CLEANING ||
        leaves_unknown(line, result) || !postgres_ask_take_error(&line->ask, result))
        line->suspect = true;
}

static void take_result(void *context, const PGresult *result)
{
    struct postgres_line *line = context;
    ExecStatusType status = PQresultStatus(result);
    if (TAILQ_EMPTY(&line->active))
        return;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        take_failure(line, result);
        return;
    }
    follow_transaction(line, result);
    if (line->phase == PHASE_LEARNING)
        line->learned = postgres_row_learn(result, &line->ask.types);
    else if (line->phase == PHASE_COMMITTING)
        take_commit(line, result);
    else if (line->phase == PHASE_ASKED)
        postgres_ask_take(&line->ask, result, postgres_conn_has_warned(line->conn));
}

static void send_last(struct postgres_line *line, const char *sql, enum phase phase)
{
    begin_phase(line, phase);
    if (PQsendQueryParams(postgres_conn_pg(line->conn), sql, 0, NULL, NULL, NULL, NULL, 0))
        postgres_conn_sync(line->conn);
    else
        postgres_conn_fail(line->conn);
}

/* The question was answered: what is to come of its transaction? */
static void end_transaction(struct postgres_line *line)
{
    struct answer *answer = &TAILQ_FIRST(&line->active)->answer;
    const char *end = postgres_ask_is_good(&line->ask) ? postgres_ask_end(&line->ask) : NULL;
    if (end && strcmp(end, "COMMIT") == 0) {
        answer->outcome = SINK_UNKNOWN; /* from now on, until the tag comes */
        send_last(line, end, PHASE_COMMITTING);
        return;
    }
    if (end)
        answer->outcome = SINK_STORED; /* there is nothing to store, and nothing else was stored */
    send_last(line, "ROLLBACK", PHASE_CLEANING);
}

static void synced(void *context)
{
    struct postgres_line *line = context;
    if (TAILQ_EMPTY(&line->active))
        return;
    postgres_conn_blame(line->conn, line->ask.problem);
    bool learning = line->phase == PHASE_LEARNING;
    if (line->suspect || line->ask.problem != POSTGRES_FINE || (learning && !line->learned))
        postgres_conn_fail(line->conn); /* there may be a better server */
    else if (learning)
        ask(line);
    else if (line->in_transaction)
        end_transaction(line);
    else
        finish_active(line);
}

/* ---- operations ----------------------------------------------------------------------------- */

void postgres_line_give(struct postgres_line *line, struct operation *operation)
{
    operation->place = line;
    if (operation->kind == QUESTION_PROBE)
        TAILQ_INSERT_HEAD(&line->waiting, operation, link);
    else
        TAILQ_INSERT_TAIL(&line->waiting, operation, link);
    event_active(line->kick, 0, 0);
}

static bool is_active(const struct postgres_line *line, const struct operation *operation)
{
    const struct operation *active;
    TAILQ_FOREACH(active, &line->active, link)
        if (active == operation)
            return true;
    return false;
}

/* Claims that were asked together with one whose time is up have more time: they may be asked again,
 * for a claim that was carried out is the same claim. */
static void ask_again(struct postgres_line *line)
{
    struct operation *operation;
    while ((operation = TAILQ_LAST(&line->active, operation_list))) {
        TAILQ_REMOVE(&line->active, operation, link);
        TAILQ_INSERT_HEAD(&line->waiting, operation, link);
    }
    event_active(line->kick, 0, 0);
}

void postgres_line_expire(struct operation *operation)
{
    struct postgres_line *line = operation->place;
    if (is_active(line, operation)) {
        postgres_conn_drop(line->conn);
        TAILQ_REMOVE(&line->active, operation, link);
        ask_again(line);
    } else {
        TAILQ_REMOVE(&line->waiting, operation, link);
    }
    operation_finish(operation);
}

const char *postgres_line_problem(const struct postgres_line *line)
{
    return postgres_conn_problem(line->conn);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static const struct postgres_conn_events conn_events = {
    .ready = ready, .result = take_result, .synced = synced, .lost = lost};

void postgres_line_free(struct postgres_line *line)
{
    if (!line)
        return;
    postgres_conn_free(line->conn);
    finish_list(&line->active);
    finish_list(&line->waiting);
    if (line->kick)
        event_free(line->kick);
    postgres_ask_free(&line->ask);
    free(line);
}

int postgres_line_new(struct event_base *base, const char *conninfo,
                      const struct postgres_conn_statement *statements, size_t count,
                      struct postgres_line **out)
{
    struct postgres_line *line = calloc(1, sizeof(*line));
    if (!line)
        return -ENOMEM;
    const struct postgres_conn_plan plan = {.conninfo = conninfo,
                                            .statements = statements,
                                            .statement_count = count,
                                            .events = &conn_events,
                                            .context = line};
    TAILQ_INIT(&line->waiting);
    TAILQ_INIT(&line->active);
    for (size_t i = 0; i < count; i++)
        line->learns = line->learns || strcmp(statements[i].name, POSTGRES_SQL_TYPES) == 0;
    line->kick = event_new(base, -1, 0, look, line);
    int rc = line->kick ? postgres_conn_new(base, &plan, &line->conn) : -ENOMEM;
    if (rc < 0) {
        postgres_line_free(line);
        return rc;
    }
    *out = line;
    return 0;
}

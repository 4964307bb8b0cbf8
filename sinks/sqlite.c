/*
 * sqlite.c - the embedded sink: SQLite behind two threads, so that no disk stops the loop.
 *
 * One thread writes (append, claim, probe, checkpoint), one reads (head, find), each with a
 * connection and a line of jobs of its own. The loop gives a job to a line; the thread answers it and wakes the loop
 * through an eventfd; the loop finishes the operation. When a deadline passes first, the operation
 * is finished at once and the job goes on without it: a job owns everything that it reads.
 *
 * Threads and loop share the struct shared, which the last of them frees: at close the loop waits
 * a moment for the threads, but a thread that hangs on a dead disk is left behind, not waited for.
 */
#include "sinks/sqlite.h"

#include "sinks/operation.h"
#include "sinks/sqlite_store.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#define CLOSE_WAIT_SECONDS 5

struct job {
    TAILQ_ENTRY(job) link;
    struct operation *operation; /* of the loop alone; NULL: it was finished without the job */
    struct question *question;
    struct answer answer;
    const char *problem; /* a constant; set with the answer */
    int line;            /* WRITES or READS */
    int gate;            /* enum sqlite_gate */
};
TAILQ_HEAD(job_list, job);

enum { WRITES, READS, LINE_COUNT };

/* One thread and its jobs. All but the store is under the lock of shared. */
struct line {
    struct shared *shared;
    struct sqlite_store *store;
    pthread_cond_t more;
    struct job_list waiting;
    struct job *running;
};

struct shared {
    pthread_mutex_t lock;
    unsigned holders;
    bool closing;
    int wake; /* eventfd: something is done */
    struct job_list done;
    struct line lines[LINE_COUNT];
};

struct sqlite_sink {
    struct sink sink;
    struct operation_desk *desk;
    struct event *woken;
    struct shared *shared;
    pthread_t threads[LINE_COUNT];
    unsigned thread_count;
    const char *problems[LINE_COUNT]; /* of each line's last answer */
};

/* ---- jobs ----------------------------------------------------------------------------------- */

static void job_free(struct job *job)
{
    operation_question_free(job->question);
    record_free(job->answer.record);
    free(job);
}

static void job_list_free(struct job_list *list)
{
    struct job *job;
    while ((job = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, job, link);
        job_free(job);
    }
}

static void shared_free(struct shared *shared)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        job_list_free(&shared->lines[i].waiting);
        sqlite_store_free(shared->lines[i].store);
        (void)pthread_cond_destroy(&shared->lines[i].more);
    }
    job_list_free(&shared->done);
    if (shared->wake >= 0)
        (void)close(shared->wake);
    (void)pthread_mutex_destroy(&shared->lock);
    free(shared);
}

static void shared_release(struct shared *shared)
{
    (void)pthread_mutex_lock(&shared->lock);
    bool last = --shared->holders == 0;
    (void)pthread_mutex_unlock(&shared->lock);
    if (last)
        shared_free(shared);
}

/* ---- the threads ---------------------------------------------------------------------------- */

static void wake_loop(const struct shared *shared)
{
    uint64_t one = 1;
    ssize_t written = write(shared->wake, &one, sizeof(one));
    (void)written; /* it only fails when the counter is full, and then the loop is awake */
}

/* The next job, or NULL when the sink is closing. */
static struct job *line_take(struct line *line)
{
    struct shared *shared = line->shared;
    (void)pthread_mutex_lock(&shared->lock);
    while (!shared->closing && TAILQ_EMPTY(&line->waiting))
        (void)pthread_cond_wait(&line->more, &shared->lock);
    struct job *job = shared->closing ? NULL : TAILQ_FIRST(&line->waiting);
    if (job)
        TAILQ_REMOVE(&line->waiting, job, link);
    line->running = job;
    (void)pthread_mutex_unlock(&shared->lock);
    return job;
}

static void line_put(struct line *line, struct job *job)
{
    struct shared *shared = line->shared;
    (void)pthread_mutex_lock(&shared->lock);
    line->running = NULL;
    TAILQ_INSERT_TAIL(&shared->done, job, link);
    (void)pthread_mutex_unlock(&shared->lock);
    wake_loop(shared);
}

static void *line_main(void *context)
{
    struct line *line = context;
    struct job *job;
    while ((job = line_take(line))) {
        sqlite_store_ask(line->store, job->question, &job->gate, &job->answer);
        job->problem = sqlite_store_problem(line->store);
        line_put(line, job);
    }
    sqlite_store_free(line->store);
    line->store = NULL;
    shared_release(line->shared);
    return NULL;
}

/* ---- the loop's side ------------------------------------------------------------------------ */

static void give(struct sqlite_sink *sink, int which, struct operation *operation)
{
    struct shared *shared = sink->shared;
    struct line *line = &shared->lines[which];
    struct job *job = calloc(1, sizeof(*job));
    if (!job || (operation->kind == QUESTION_APPEND &&
                 operation_question_own_rows(operation->question) < 0)) {
        free(job);
        operation_finish(operation);
        return;
    }
    job->operation = operation;
    job->question = AR_TAKE(operation->question);
    job->answer = operation->answer;
    job->problem = "";
    job->line = which;
    job->gate = GATE_OPEN;
    operation->place = job;
    (void)pthread_mutex_lock(&shared->lock);
    TAILQ_INSERT_TAIL(&line->waiting, job, link);
    (void)pthread_mutex_unlock(&shared->lock);
    (void)pthread_cond_signal(&line->more);
}

static void job_finish(struct job *job)
{
    struct operation *operation = job->operation;
    if (operation) {
        operation->answer = job->answer;
        job->answer.record = NULL;
        operation_finish(operation);
    }
    job_free(job);
}

static void finish_done(struct sqlite_sink *sink)
{
    struct shared *shared = sink->shared;
    struct job_list done = TAILQ_HEAD_INITIALIZER(done);
    (void)pthread_mutex_lock(&shared->lock);
    TAILQ_CONCAT(&done, &shared->done, link);
    (void)pthread_mutex_unlock(&shared->lock);
    struct job *job;
    while ((job = TAILQ_FIRST(&done))) {
        TAILQ_REMOVE(&done, job, link);
        sink->problems[job->line] = job->problem;
        job_finish(job);
    }
}

static void woken(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    struct sqlite_sink *sink = context;
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got; /* nothing there: another wake was for it */
    finish_done(sink);
}

/* Did the loop come first, before COMMIT? Then the thread will roll back. */
static bool shut_gate(struct job *job)
{
    int open = GATE_OPEN;
    return __atomic_compare_exchange_n(&job->gate, &open, GATE_ABANDONED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE) ||
           open == GATE_ABANDONED;
}

/* Takes the operation from its job: the job goes on, or is dropped, without it. */
static void abandon(struct operation *operation)
{
    struct job *job = operation->place;
    if (!shut_gate(job) && operation->kind == QUESTION_APPEND)
        operation->answer.outcome = SINK_UNKNOWN;
    job->operation = NULL;
    operation_finish(operation);
}

/* Was it still waiting in a line? Then it is off it. */
static bool withdraw(struct shared *shared, struct job *wanted)
{
    bool found = false;
    (void)pthread_mutex_lock(&shared->lock);
    for (size_t i = 0; i < LINE_COUNT && !found; i++) {
        struct job *job;
        TAILQ_FOREACH(job, &shared->lines[i].waiting, link)
            if (job == wanted)
                break;
        found = job != NULL;
        if (found)
            TAILQ_REMOVE(&shared->lines[i].waiting, job, link);
    }
    (void)pthread_mutex_unlock(&shared->lock);
    return found;
}

static void expired(void *context, struct operation *operation)
{
    struct sqlite_sink *sink = context;
    struct job *job = operation->place;
    bool waiting = withdraw(sink->shared, job);
    if (sink->problems[job->line][0] == '\0')
        sink->problems[job->line] = "timed_out"; /* until the thread says what held it up */
    abandon(operation);
    if (waiting)
        job_free(job);
}

/* ---- operations ----------------------------------------------------------------------------- */

static void sqlite_append(struct sink *sink, const struct sink_batch *batch, int deadline_ms,
                          sink_append_fn *done, void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    give(self, WRITES, operation_append(self->desk, batch, deadline_ms, done, context));
}

static void sqlite_head(struct sink *sink, const char *writer, int deadline_ms, sink_head_fn *done,
                        void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    give(self, READS, operation_head(self->desk, writer, deadline_ms, done, context));
}

static void sqlite_find(struct sink *sink, const struct sink_key *key, int deadline_ms,
                        sink_find_fn *done, void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    give(self, READS, operation_find(self->desk, key, deadline_ms, done, context));
}

static void sqlite_claim(struct sink *sink, const char *company, const char *key,
                         const char *request_sha256, const char *run_id, int deadline_ms,
                         sink_claim_fn *done, void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    give(self, WRITES,
         operation_claim(self->desk, company, key, request_sha256, run_id, deadline_ms, done,
                         context));
}

static void sqlite_probe(struct sink *sink, int deadline_ms, sink_probe_fn *done, void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    give(self, WRITES, operation_probe(self->desk, deadline_ms, done, context));
}

static void sqlite_checkpoint(struct sink *sink, const struct checkpoint *checkpoint,
                              int deadline_ms, sink_done_fn *done, void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    give(self, WRITES, operation_checkpoint(self->desk, checkpoint, deadline_ms, done, context));
}

/* Nothing has to be made ahead: the thread is not asked. */
static void sqlite_maintain(struct sink *sink, int deadline_ms, sink_done_fn *done, void *context)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    struct operation *operation = operation_maintain(self->desk, deadline_ms, done, context);
    operation->answer.done = true;
    operation_finish(operation);
}

static const char *sqlite_problem(const struct sink *sink)
{
    const struct sqlite_sink *self = (const struct sqlite_sink *)sink;
    return self->problems[WRITES][0] ? self->problems[WRITES] : self->problems[READS];
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void stop_threads(struct sqlite_sink *sink)
{
    struct shared *shared = sink->shared;
    struct timespec until;
    (void)pthread_mutex_lock(&shared->lock);
    shared->closing = true;
    for (size_t i = 0; i < LINE_COUNT; i++) {
        if (shared->lines[i].running)
            (void)shut_gate(shared->lines[i].running);
        (void)pthread_cond_signal(&shared->lines[i].more);
    }
    (void)pthread_mutex_unlock(&shared->lock);
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CLOSE_WAIT_SECONDS;
    for (size_t i = 0; i < sink->thread_count; i++)
        if (pthread_clockjoin_np(sink->threads[i], NULL, CLOCK_MONOTONIC, &until) != 0)
            (void)pthread_detach(sink->threads[i]);
}

/* What the threads have not answered by now is abandoned. */
static void abandon_all(struct shared *shared)
{
    for (size_t i = 0; i < LINE_COUNT; i++) {
        struct line *line = &shared->lines[i];
        struct job *job;
        (void)pthread_mutex_lock(&shared->lock);
        if (line->running && line->running->operation)
            abandon(line->running->operation);
        while ((job = TAILQ_FIRST(&line->waiting))) {
            TAILQ_REMOVE(&line->waiting, job, link);
            abandon(job->operation);
            job_free(job);
        }
        (void)pthread_mutex_unlock(&shared->lock);
    }
}

static void sqlite_close(struct sink *sink)
{
    struct sqlite_sink *self = (struct sqlite_sink *)sink;
    if (self->shared) {
        stop_threads(self);
        finish_done(self);
        abandon_all(self->shared);
        operation_desk_flush(self->desk);
        shared_release(self->shared);
    }
    if (self->woken)
        event_free(self->woken);
    operation_desk_free(self->desk);
    free(self);
}

static const struct sink_ops sqlite_ops = {
    .name = "sqlite",
    .append = sqlite_append,
    .head = sqlite_head,
    .find = sqlite_find,
    .claim = sqlite_claim,
    .probe = sqlite_probe,
    .checkpoint = sqlite_checkpoint,
    .maintain = sqlite_maintain,
    .problem = sqlite_problem,
    .close = sqlite_close,
};

static int shared_new(const char *path, struct shared **out)
{
    struct shared *shared = calloc(1, sizeof(*shared));
    if (!shared)
        return -ENOMEM;
    int rc = 0;
    shared->holders = 1;
    TAILQ_INIT(&shared->done);
    (void)pthread_mutex_init(&shared->lock, NULL);
    shared->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shared->wake < 0)
        rc = -errno;
    for (size_t i = 0; i < LINE_COUNT; i++) {
        struct line *line = &shared->lines[i];
        line->shared = shared;
        TAILQ_INIT(&line->waiting);
        (void)pthread_cond_init(&line->more, NULL);
        if (rc == 0)
            rc = sqlite_store_new(path, &line->store);
    }
    if (rc < 0)
        shared_free(shared);
    else
        *out = shared;
    return rc;
}

/* Signals are the loop's: the threads block them all. */
static int start_threads(struct sqlite_sink *sink)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = 0;
    for (size_t i = 0; i < LINE_COUNT && rc == 0; i++) {
        struct shared *shared = sink->shared;
        (void)pthread_mutex_lock(&shared->lock);
        shared->holders++;
        (void)pthread_mutex_unlock(&shared->lock);
        rc = pthread_create(&sink->threads[i], NULL, line_main, &shared->lines[i]);
        if (rc == 0)
            sink->thread_count++;
        else
            shared_release(shared);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

static int connect_to_loop(struct sqlite_sink *sink, struct event_base *base)
{
    sink->woken = event_new(base, sink->shared->wake, EV_READ | EV_PERSIST, woken, sink);
    return sink->woken && event_add(sink->woken, NULL) == 0 ? 0 : -ENOMEM;
}

int sqlite_open(const char *path, struct event_base *base, struct sink **out)
{
    struct sqlite_sink *sink = calloc(1, sizeof(*sink));
    if (!sink)
        return -ENOMEM;
    sink->sink.ops = &sqlite_ops;
    for (size_t i = 0; i < LINE_COUNT; i++)
        sink->problems[i] = "";
    int rc = operation_desk_new(base, expired, sink, &sink->desk);
    if (rc == 0)
        rc = shared_new(path, &sink->shared);
    if (rc == 0)
        rc = connect_to_loop(sink, base);
    if (rc == 0)
        rc = start_threads(sink);
    if (rc < 0) {
        sqlite_close(&sink->sink);
        return rc;
    }
    *out = &sink->sink;
    return 0;
}

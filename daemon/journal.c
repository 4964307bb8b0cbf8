/*
 * journal.c - intents and kept records, written by a thread of its own.
 *
 * The loop puts jobs into `todo`; the thread takes all that are there, appends them, syncs once, and
 * puts them into `finished`; an eventfd wakes the loop, which makes the callbacks. So one sync serves
 * all runs that came while the last one was at the disk. The store (file and table of open entries)
 * belongs to the thread once it runs; what the loop wants to know of it is copied after each group.
 */
#include "daemon/journal.h"

#include "daemon/clock.h"
#include "daemon/config.h"
#include "daemon/fault.h"
#include "daemon/log.h"
#include "daemon/run_record.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

struct job {
    TAILQ_ENTRY(job) link;
    struct journal_note note;
    char *text; /* owned; what the note says */
    int rc;
    void (*done)(void *context, int rc);
    void *context;
};
TAILQ_HEAD(job_list, job);

/* The newest head that was acknowledged. */
struct head {
    char writer[UUID7_TEXT_BYTES];
    int64_t seq; /* 0: none */
    char hash[DIGEST_HEX_BYTES];
};

/* What a former daemon left. */
struct left {
    struct record *record; /* or, when NULL: */
    enum journal_type type;
    char id[UUID7_TEXT_BYTES];
    char *text;
};

struct journal {
    struct line *line;
    struct journal_store *store;   /* the thread's */
    char writer[UUID7_TEXT_BYTES]; /* the loop's */
    struct head last_head;         /* as it was at the opening */
    struct left *left;
    size_t left_count, left_next;
    run_done_fn *stage_done;
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct job_list todo, finished; /* under the mutex, as all that follows */
    struct head head;               /* to be noted */
    struct journal_figures figures;
    bool stopping;
    int eventfd;
    struct event *event;
};

/* ---- the thread ------------------------------------------------------------------------------- */

static void write_head(struct journal_store *store, const struct head *head)
{
    char text[JOURNAL_HEAD_BYTES];
    struct journal_note note = {.type = JOURNAL_HEAD, .text = text};
    journal_state_head_text(head->seq, head->hash, text);
    note.length = strlen(text);
    memcpy(note.id, head->writer, sizeof note.id);
    int rc = journal_store_put(store, &note);
    if (rc < 0 && rc != -ENOSPC)
        log_warning("the head of the ledger could not be noted in the journal: %s", strerror(-rc));
}

/* A point that is passed by groups that have a note of this type. */
static void pass_point(const struct job_list *jobs, enum journal_type type, const char *point)
{
    const struct job *job;
    TAILQ_FOREACH(job, jobs, link) {
        if (job->note.type == type && job->rc == 0) {
            fault_point(point);
            return;
        }
    }
}

static void write_jobs(struct journal *journal, struct job_list *jobs, const struct head *head)
{
    struct job *job;
    bool must_sync = false;
    TAILQ_FOREACH(job, jobs, link) {
        job->rc = journal_store_put(journal->store, &job->note);
        must_sync = must_sync || job->note.type != JOURNAL_SETTLED || job->done;
    }
    pass_point(jobs, JOURNAL_INTENT, "intent_written");
    pass_point(jobs, JOURNAL_SETTLED, "settle_written");
    if (head->seq > 0)
        write_head(journal->store, head);
    int rc = must_sync ? journal_store_sync(journal->store) : 0;
    TAILQ_FOREACH(job, jobs, link)
        if (rc < 0 && job->rc == 0)
            job->rc = rc;
    pass_point(jobs, JOURNAL_INTENT, "intent_durable");
    pass_point(jobs, JOURNAL_KEPT, "record_kept");
}

static void hand_back(struct journal *journal, struct job_list *jobs)
{
    uint64_t one = 1;
    pthread_mutex_lock(&journal->mutex);
    TAILQ_CONCAT(&journal->finished, jobs, link);
    journal_store_figures(journal->store, &journal->figures);
    pthread_mutex_unlock(&journal->mutex);
    if (write(journal->eventfd, &one, sizeof one) != (ssize_t)sizeof one)
        log_fatal("the journal's thread cannot wake the loop");
}

static bool has_work(const struct journal *journal)
{
    return !TAILQ_EMPTY(&journal->todo) || journal->head.seq > 0;
}

/* Waits for work and takes it; false when there will be no more. */
static bool take_work(struct journal *journal, struct job_list *jobs, struct head *head)
{
    pthread_mutex_lock(&journal->mutex);
    while (!has_work(journal) && !journal->stopping)
        pthread_cond_wait(&journal->wake, &journal->mutex);
    TAILQ_INIT(jobs);
    TAILQ_CONCAT(jobs, &journal->todo, link);
    *head = journal->head;
    journal->head.seq = 0;
    pthread_mutex_unlock(&journal->mutex);
    return !TAILQ_EMPTY(jobs) || head->seq > 0;
}

static void rest_if_idle(struct journal *journal)
{
    pthread_mutex_lock(&journal->mutex);
    bool idle = !has_work(journal);
    pthread_mutex_unlock(&journal->mutex);
    if (idle)
        journal_store_rest(journal->store);
}

static void *journal_thread(void *context)
{
    struct journal *journal = context;
    struct job_list jobs;
    struct head head;
    while (take_work(journal, &jobs, &head)) {
        write_jobs(journal, &jobs, &head);
        hand_back(journal, &jobs);
        journal_store_tidy(journal->store);
        rest_if_idle(journal);
    }
    return NULL;
}

/* ---- the loop --------------------------------------------------------------------------------- */

static void free_job(struct job *job)
{
    free(job->text);
    free(job);
}

static void call_back(evutil_socket_t fd, short what, void *context)
{
    struct journal *journal = context;
    struct job_list jobs = TAILQ_HEAD_INITIALIZER(jobs);
    struct job *job;
    uint64_t count;
    (void)what;
    if (fd >= 0 && read(fd, &count, sizeof count) < 0 && errno != EAGAIN)
        log_fatal("the journal's eventfd cannot be read");
    pthread_mutex_lock(&journal->mutex);
    TAILQ_CONCAT(&jobs, &journal->finished, link);
    pthread_mutex_unlock(&journal->mutex);
    while ((job = TAILQ_FIRST(&jobs))) {
        TAILQ_REMOVE(&jobs, job, link);
        if (job->done)
            job->done(job->context, job->rc);
        else if (job->rc < 0)
            log_warning("a note in the journal failed: %s", strerror(-job->rc));
        free_job(job);
    }
}

/* Hands a job to the thread. text is taken over; false when out of memory (text is freed). */
static bool give(struct journal *journal, const struct journal_note *note, char *text,
                 void (*done)(void *, int), void *context)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        free(text);
        return false;
    }
    *job = (struct job){.note = *note, .text = text, .done = done, .context = context};
    job->note.text = text;
    job->note.length = text ? strlen(text) : 0;
    pthread_mutex_lock(&journal->mutex);
    TAILQ_INSERT_TAIL(&journal->todo, job, link);
    pthread_mutex_unlock(&journal->mutex);
    pthread_cond_signal(&journal->wake); /* who wakes up does not meet the mutex */
    return true;
}

static struct journal_note make_note(enum journal_type type, const char *id)
{
    struct journal_note note = {.type = type};
    memcpy(note.id, id, strnlen(id, UUID7_TEXT_BYTES - 1));
    return note;
}

static char *record_text(const struct record *record)
{
    AR_AUTO_JSON json_t *value = record ? record_to_journal_json(record) : NULL;
    return value ? json_canonical(value) : NULL;
}

static void intent_is_durable(void *context, int rc)
{
    struct run *run = context;
    if (rc < 0) {
        log_run(LOG_LEVEL_ERROR, run->id,
                "run %s refused: its intent cannot be written to the journal: %s", run->id,
                strerror(-rc));
        run_end(run, REASON_OVERLOADED);
    } else {
        run->noted = true;
    }
    run->line->journal->stage_done(run);
}

void journal_stage(struct run *run, run_done_fn *done)
{
    struct journal *journal = run->line->journal;
    struct journal_note note = make_note(JOURNAL_INTENT, run->id);
    journal->stage_done = done;
    run->noted = true; /* so that the intent carries the idempotency key */
    struct record *intent = run_record_intent(run);
    run->noted = false;
    char *text = record_text(intent);
    record_free(intent);
    if (text && give(journal, &note, text, intent_is_durable, run))
        return;
    run_end(run, REASON_OVERLOADED);
    done(run);
}

void journal_keep(struct journal *journal, const struct record *record,
                  void (*done)(void *context, int rc), void *context)
{
    struct journal_note note = make_note(JOURNAL_KEPT, record->run_id);
    char *text = record_text(record);
    note.since_us = record->finished_at;
    if (!text || !give(journal, &note, text, done, context))
        done(context, -ENOMEM);
}

void journal_keep_text(struct journal *journal, enum journal_type type, const char *id,
                       const char *text, void (*done)(void *context, int rc), void *context)
{
    struct journal_note note = make_note(type, id);
    char *copy = strdup(text);
    if (!copy || !give(journal, &note, copy, done, context))
        done(context, -ENOMEM);
}

void journal_settle(struct journal *journal, const char *run_id)
{
    struct journal_note note = make_note(JOURNAL_SETTLED, run_id);
    if (!give(journal, &note, NULL, NULL, NULL))
        log_warning("no memory to settle run %s in the journal", run_id);
}

void journal_settle_durably(struct journal *journal, const char *id,
                            void (*done)(void *context, int rc), void *context)
{
    struct journal_note note = make_note(JOURNAL_SETTLED, id);
    if (!give(journal, &note, NULL, done, context))
        done(context, -ENOMEM);
}

void journal_note_head(struct journal *journal, int64_t seq, const char *hash)
{
    pthread_mutex_lock(&journal->mutex);
    memcpy(journal->head.writer, journal->writer, sizeof journal->head.writer);
    memcpy(journal->head.hash, hash, sizeof journal->head.hash);
    journal->head.seq = seq;
    pthread_mutex_unlock(&journal->mutex); /* it goes with what is settled next, or at the end */
}

const char *journal_writer(const struct journal *journal)
{
    return journal->writer;
}

static int make_writer(struct journal *journal)
{
    uint8_t random[10];
    struct uuid7_generator generator = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return -EIO;
    uuid7_next(&generator, (uint64_t)clock_wall_us() / 1000, random, journal->writer);
    return 0;
}

int journal_renew_writer(struct journal *journal)
{
    int rc = make_writer(journal);
    struct journal_note note = make_note(JOURNAL_WRITER, journal->writer);
    journal->last_head.seq = 0;
    if (rc == 0 && !give(journal, &note, NULL, NULL, NULL))
        log_error("no memory to note the new writer in the journal");
    return rc;
}

bool journal_last_head(const struct journal *journal, int64_t *seq, char hash[DIGEST_HEX_BYTES])
{
    if (journal->last_head.seq == 0)
        return false;
    *seq = journal->last_head.seq;
    memcpy(hash, journal->last_head.hash, DIGEST_HEX_BYTES);
    return true;
}

void journal_figures(struct journal *journal, struct journal_figures *out)
{
    pthread_mutex_lock(&journal->mutex);
    *out = journal->figures;
    pthread_mutex_unlock(&journal->mutex);
}

json_t *journal_status(struct journal *journal)
{
    struct journal_figures figures;
    journal_figures(journal, &figures);
    int64_t age_ms = (clock_wall_us() - figures.oldest_kept_us) / 1000;
    json_t *oldest = figures.kept > 0 ? json_integer(age_ms > 0 ? age_ms : 0) : json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:b}", "bytes", (json_int_t)figures.bytes,
                     "max_bytes", (json_int_t)figures.max_bytes, "open_intents",
                     (json_int_t)figures.intents, "kept", (json_int_t)figures.kept, "events",
                     (json_int_t)figures.events, "oldest_kept_ms", oldest, "full", figures.full);
}

/* ---- what was left ---------------------------------------------------------------------------- */

struct record *journal_next_left(struct journal *journal)
{
    struct record *record = NULL;
    while (!record && journal->left_next < journal->left_count) {
        struct record **left = &journal->left[journal->left_next++].record;
        record = AR_TAKE(*left);
    }
    return record;
}

bool journal_next_left_text(struct journal *journal, enum journal_type type,
                            char id[UUID7_TEXT_BYTES], char **text)
{
    for (size_t i = 0; i < journal->left_count; i++) {
        struct left *left = &journal->left[i];
        if (!left->text || left->type != type)
            continue;
        memcpy(id, left->id, UUID7_TEXT_BYTES);
        *text = AR_TAKE(left->text);
        return true;
    }
    return false;
}

static int collect_left(void *context, const struct journal_entry *entry)
{
    struct journal *journal = context;
    struct left *left = &journal->left[journal->left_count++];
    if (entry->type != JOURNAL_EVENT && entry->type != JOURNAL_SWITCH)
        return journal_state_record(entry->payload, entry->length, &left->record);
    left->type = entry->type;
    memcpy(left->id, entry->id, sizeof left->id);
    left->text = strdup(entry->payload + UUID7_TEXT_BYTES); /* behind the id and the blank */
    return left->text ? 0 : -ENOMEM;
}

/* Ids rise over a restart, too. */
static void continue_ids(struct line *line, const char *last_id)
{
    uuid7_raise(&line->ids, last_id);
    id_clock_start(&line->id_clock, clock_wall_us(), clock_monotonic_us(),
                   (int64_t)uuid7_time_ms(last_id) * 1000);
}

static int read_left(struct journal *journal)
{
    const struct journal_state *state = journal_store_state(journal->store);
    journal->left = calloc(journal_entries_count(&state->entries) + 1, sizeof(struct left));
    if (!journal->left)
        return -ENOMEM;
    if (state->last_id[0])
        continue_ids(journal->line, state->last_id);
    memcpy(journal->writer, state->writer, sizeof journal->writer);
    journal->last_head.seq = state->head_seq;
    memcpy(journal->last_head.hash, state->head_hash, sizeof journal->last_head.hash);
    return journal_entries_each(&state->entries, collect_left, journal);
}

/* ---- opening ---------------------------------------------------------------------------------- */

/* A journal without a writer is a new one: nothing is done under a name that could be forgotten. */
static int begin_writer(struct journal *journal)
{
    if (journal->writer[0])
        return 0;
    int rc = make_writer(journal);
    struct journal_note note = make_note(JOURNAL_WRITER, journal->writer);
    if (rc == 0)
        rc = journal_store_put(journal->store, &note);
    return rc == 0 ? journal_store_sync(journal->store) : rc;
}

static int start_thread(struct journal *journal)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    int rc = pthread_create(&journal->thread, NULL, journal_thread, journal);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    journal->thread_runs = rc == 0;
    return -rc;
}

static int start(struct journal *journal)
{
    int rc = read_left(journal);
    if (rc == 0)
        rc = begin_writer(journal);
    if (rc < 0)
        return rc;
    journal_store_figures(journal->store, &journal->figures);
    journal->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (journal->eventfd < 0)
        return -errno;
    journal->event =
        event_new(journal->line->base, journal->eventfd, EV_READ | EV_PERSIST, call_back, journal);
    if (!journal->event || event_add(journal->event, NULL) != 0)
        return -ENOMEM;
    return start_thread(journal);
}

int journal_open(struct line *line, const char *directory, struct journal **out,
                 char message[JOURNAL_MESSAGE_BYTES])
{
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return -ENOMEM;
    journal->line = line;
    journal->eventfd = -1;
    TAILQ_INIT(&journal->todo);
    TAILQ_INIT(&journal->finished);
    (void)pthread_mutex_init(&journal->mutex, NULL);
    (void)pthread_cond_init(&journal->wake, NULL);
    int rc =
        journal_store_open(directory, line->config->journal_max_bytes, &journal->store, message);
    if (rc == 0)
        rc = start(journal);
    if (rc == 0)
        *out = journal;
    else
        journal_free(journal);
    return rc;
}

void journal_free(struct journal *journal)
{
    if (!journal)
        return;
    if (journal->thread_runs) {
        pthread_mutex_lock(&journal->mutex);
        journal->stopping = true;
        pthread_cond_signal(&journal->wake);
        pthread_mutex_unlock(&journal->mutex);
        (void)pthread_join(journal->thread, NULL);
        call_back(journal->eventfd, 0, journal);
    }
    if (journal->event)
        event_free(journal->event);
    base_close(&journal->eventfd);
    for (size_t i = 0; i < journal->left_count; i++) {
        record_free(journal->left[i].record);
        free(journal->left[i].text);
    }
    free(journal->left);
    journal_store_close(journal->store);
    (void)pthread_mutex_destroy(&journal->mutex);
    (void)pthread_cond_destroy(&journal->wake);
    free(journal);
}

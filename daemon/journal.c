/*
 * journal.c - intents and kept records, written by a thread of its own.
 *
 * The loop puts jobs into `todo`; the thread takes all that are there, appends them, syncs once, and
 * puts them into `finished`; an eventfd wakes the loop, which makes the callbacks. So one sync serves
 * all runs that came while the last one was at the disk. The file and the table of open entries
 * belong to the thread once it runs.
 */
#include "daemon/journal.h"

#include "daemon/journal_entries.h"
#include "daemon/journal_file.h"
#include "daemon/log.h"
#include "daemon/run_record.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#define JOURNAL_REWRITE_BYTES (16 << 20) /* over this, and four times what is open: rewritten */

struct job {
    TAILQ_ENTRY(job) link;
    enum journal_type type;
    char run_id[UUID7_TEXT_BYTES]; /* of a writer, with JOURNAL_WRITER */
    char *payload;                 /* owned; NULL: the id is the payload */
    size_t length;
    int rc;
    void (*done)(void *context, int rc);
    void *context;
};
TAILQ_HEAD(job_list, job);

struct journal {
    struct line *line;
    struct journal_file *file;
    struct journal_entries entries;
    char writer[UUID7_TEXT_BYTES];       /* the loop's */
    char noted_writer[UUID7_TEXT_BYTES]; /* the thread's */
    char last_id[UUID7_TEXT_BYTES];
    struct record **left;
    size_t left_count, left_next;
    run_done_fn *stage_done;
    pthread_t thread;
    bool thread_runs;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct job_list todo, finished;
    bool stopping;
    int eventfd;
    struct event *event;
};

/* ---- the thread ------------------------------------------------------------------------------- */

static void note_entry(struct journal *journal, struct job *job)
{
    if (job->type == JOURNAL_SETTLED)
        journal_entries_remove(&journal->entries, job->run_id);
    else if (job->type == JOURNAL_WRITER)
        memcpy(journal->noted_writer, job->run_id, sizeof journal->noted_writer);
    else
        job->rc = journal_entries_put(&journal->entries, job->run_id, job->type, job->payload,
                                      job->length);
    if (job->type == JOURNAL_INTENT && strcmp(job->run_id, journal->last_id) > 0)
        memcpy(journal->last_id, job->run_id, sizeof journal->last_id);
}

static int rewrite_entry(void *context, const struct journal_entry *entry)
{
    return journal_file_append(context, entry->type, entry->payload, entry->length);
}

static int write_open_entries(void *context, struct journal_file *file)
{
    struct journal *journal = context;
    int rc = journal_file_append(file, JOURNAL_WRITER, journal->noted_writer,
                                 strlen(journal->noted_writer));
    if (rc == 0 && journal->last_id[0]) /* so that ids never step back over a restart */
        rc = journal_file_append(file, JOURNAL_SETTLED, journal->last_id, strlen(journal->last_id));
    return rc == 0 ? journal_entries_each(&journal->entries, rewrite_entry, file) : rc;
}

static void rewrite_if_big(struct journal *journal)
{
    off_t size = journal_file_size(journal->file);
    if (size < JOURNAL_REWRITE_BYTES || size / 4 < (off_t)journal->entries.bytes)
        return;
    int rc = journal_file_rewrite(journal->file, write_open_entries, journal);
    if (rc < 0)
        log_warning("the journal could not be rewritten, it goes on in the old file: %s",
                    strerror(-rc));
}

static void write_jobs(struct journal *journal, struct job_list *jobs)
{
    struct job *job;
    bool must_sync = false;
    TAILQ_FOREACH(job, jobs, link) {
        job->rc =
            journal_file_append(journal->file, job->type, job->payload ? job->payload : job->run_id,
                                job->payload ? job->length : strlen(job->run_id));
        if (job->rc == 0)
            note_entry(journal, job);
        must_sync = must_sync || job->type != JOURNAL_SETTLED;
    }
    int rc = must_sync ? journal_file_sync(journal->file) : 0;
    TAILQ_FOREACH(job, jobs, link)
        if (rc < 0 && job->rc == 0)
            job->rc = rc;
    rewrite_if_big(journal);
}

static void hand_back(struct journal *journal, struct job_list *jobs)
{
    uint64_t one = 1;
    pthread_mutex_lock(&journal->mutex);
    TAILQ_CONCAT(&journal->finished, jobs, link);
    pthread_mutex_unlock(&journal->mutex);
    if (write(journal->eventfd, &one, sizeof one) != (ssize_t)sizeof one)
        log_fatal("the journal's thread cannot wake the loop");
}

static void *journal_thread(void *context)
{
    struct journal *journal = context;
    struct job_list jobs;
    for (;;) {
        TAILQ_INIT(&jobs);
        pthread_mutex_lock(&journal->mutex);
        while (TAILQ_EMPTY(&journal->todo) && !journal->stopping)
            pthread_cond_wait(&journal->wake, &journal->mutex);
        TAILQ_CONCAT(&jobs, &journal->todo, link);
        pthread_mutex_unlock(&journal->mutex);
        if (TAILQ_EMPTY(&jobs))
            return NULL;
        write_jobs(journal, &jobs);
        hand_back(journal, &jobs);
    }
}

/* ---- the loop --------------------------------------------------------------------------------- */

static void free_job(struct job *job)
{
    free(job->payload);
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

/* Hands a job to the thread. payload is taken over; false when out of memory (payload is freed). */
static bool give(struct journal *journal, enum journal_type type, const char *run_id, char *payload,
                 void (*done)(void *, int), void *context)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        free(payload);
        return false;
    }
    *job = (struct job){.type = type, .payload = payload, .done = done, .context = context};
    job->length = payload ? strlen(payload) : 0;
    memcpy(job->run_id, run_id, strnlen(run_id, UUID7_TEXT_BYTES - 1));
    pthread_mutex_lock(&journal->mutex);
    TAILQ_INSERT_TAIL(&journal->todo, job, link);
    pthread_cond_signal(&journal->wake);
    pthread_mutex_unlock(&journal->mutex);
    return true;
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
        log_error("run %s refused: its intent cannot be written to the journal: %s", run->id,
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
    journal->stage_done = done;
    run->noted = true; /* so that the intent carries the idempotency key */
    struct record *intent = run_record_intent(run);
    run->noted = false;
    char *text = record_text(intent);
    record_free(intent);
    if (text && give(journal, JOURNAL_INTENT, run->id, text, intent_is_durable, run))
        return;
    run_end(run, REASON_OVERLOADED);
    done(run);
}

void journal_keep(struct journal *journal, const struct record *record,
                  void (*done)(void *context, int rc), void *context)
{
    char *text = record_text(record);
    if (!text || !give(journal, JOURNAL_KEPT, record->run_id, text, done, context))
        done(context, -ENOMEM);
}

void journal_settle(struct journal *journal, const char *run_id)
{
    if (!give(journal, JOURNAL_SETTLED, run_id, NULL, NULL, NULL))
        log_warning("no memory to settle run %s in the journal", run_id);
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
    uuid7_next(&generator, (uint64_t)time(NULL) * 1000, random, journal->writer);
    return 0;
}

int journal_renew_writer(struct journal *journal)
{
    int rc = make_writer(journal);
    if (rc == 0 && !give(journal, JOURNAL_WRITER, journal->writer, NULL, NULL, NULL))
        log_error("no memory to note the new writer in the journal");
    return rc;
}

struct record *journal_next_left(struct journal *journal)
{
    if (journal->left_next == journal->left_count)
        return NULL;
    struct record **left = &journal->left[journal->left_next++];
    return AR_TAKE(*left);
}

/* ---- opening ---------------------------------------------------------------------------------- */

static void raise_ids(struct journal *journal, const char *run_id)
{
    if (!uuid7_is_valid(run_id) || strcmp(run_id, journal->last_id) <= 0)
        return;
    memcpy(journal->last_id, run_id, UUID7_TEXT_BYTES);
    uuid7_raise(&journal->line->ids, run_id);
}

static int visit_record(struct journal *journal, enum journal_type type, const char *payload,
                        size_t length)
{
    struct json_document document = {0};
    struct fault fault = {0};
    struct record *record = NULL;
    int rc = json_parse(payload, length, &document);
    if (rc == JSON_OK)
        rc = record_from_json(document.root, true, &record, &fault);
    json_document_free(&document);
    if (rc != 0)
        return rc < 0 ? rc : -EUCLEAN;
    raise_ids(journal, record->run_id);
    rc = journal_entries_put(&journal->entries, record->run_id, type, payload, length);
    record_free(record);
    return rc;
}

static int visit_frame(void *context, enum journal_type type, const char *payload, size_t length)
{
    struct journal *journal = context;
    char id[UUID7_TEXT_BYTES] = "";
    if (type == JOURNAL_INTENT || type == JOURNAL_KEPT)
        return visit_record(journal, type, payload, length);
    if (length != UUID7_TEXT_BYTES - 1)
        return -EUCLEAN;
    memcpy(id, payload, length);
    if (!uuid7_is_uuid(id))
        return -EUCLEAN;
    if (type == JOURNAL_WRITER) {
        memcpy(journal->writer, id, sizeof id);
    } else {
        raise_ids(journal, id);
        journal_entries_remove(&journal->entries, id);
    }
    return 0;
}

static int collect_left(void *context, const struct journal_entry *entry)
{
    struct journal *journal = context;
    struct json_document document = {0};
    struct fault fault = {0};
    int rc = json_parse(entry->payload, entry->length, &document);
    if (rc == JSON_OK)
        rc = record_from_json(document.root, true, &journal->left[journal->left_count], &fault);
    json_document_free(&document);
    if (rc != 0)
        return rc < 0 ? rc : -EUCLEAN;
    journal->left_count++;
    return 0;
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

static int read_left(struct journal *journal)
{
    journal->left = calloc(journal->entries.count + 1, sizeof(struct record *));
    if (!journal->left)
        return -ENOMEM;
    int rc = journal_entries_each(&journal->entries, collect_left, journal);
    if (rc == 0 && !journal->writer[0])
        rc = make_writer(journal);
    memcpy(journal->noted_writer, journal->writer, sizeof journal->noted_writer);
    if (rc == 0)
        rc = journal_file_rewrite(journal->file, write_open_entries, journal);
    return rc;
}

static int start(struct journal *journal)
{
    int rc = read_left(journal);
    if (rc < 0)
        return rc;
    journal->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (journal->eventfd < 0)
        return -errno;
    journal->event =
        event_new(journal->line->base, journal->eventfd, EV_READ | EV_PERSIST, call_back, journal);
    if (!journal->event || event_add(journal->event, NULL) != 0)
        return -ENOMEM;
    return start_thread(journal);
}

/* What to tell an operator about a journal that cannot be used. */
static void explain(int rc, const char *directory, off_t offset, char *message)
{
    if (rc == -EWOULDBLOCK)
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES, "another daemon uses the journal in %s",
                       directory);
    else if (rc == -EUCLEAN)
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES,
                       "the journal %s/journal is damaged at byte %lld; nothing was changed",
                       directory, (long long)offset);
    else
        (void)snprintf(message, JOURNAL_MESSAGE_BYTES, "the journal in %s cannot be used: %s",
                       directory, strerror(-rc));
}

int journal_open(struct line *line, const char *directory, struct journal **out,
                 char message[JOURNAL_MESSAGE_BYTES])
{
    off_t offset = 0;
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return -ENOMEM;
    journal->line = line;
    journal->eventfd = -1;
    TAILQ_INIT(&journal->todo);
    TAILQ_INIT(&journal->finished);
    (void)pthread_mutex_init(&journal->mutex, NULL);
    (void)pthread_cond_init(&journal->wake, NULL);
    int rc = journal_file_open(directory, visit_frame, journal, &journal->file, &offset);
    if (rc == 0)
        rc = start(journal);
    if (rc == 0) {
        *out = journal;
        return 0;
    }
    explain(rc, directory, offset, message);
    journal_free(journal);
    return rc == -ENOMEM ? rc : 1;
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
    for (size_t i = 0; i < journal->left_count; i++)
        record_free(journal->left[i]);
    free(journal->left);
    journal_entries_free(&journal->entries);
    journal_file_close(journal->file);
    (void)pthread_mutex_destroy(&journal->mutex);
    (void)pthread_cond_destroy(&journal->wake);
    free(journal);
}

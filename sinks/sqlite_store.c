/*
 * sqlite_store.c - see sqlite_store.h.
 *
 * A batch is one IMMEDIATE transaction: head compared and set, rows, keys, COMMIT. Only a COMMIT
 * that returned without an error counts as stored. One that failed while the transaction was still
 * open (a lock) is rolled back and not stored; any other failure of COMMIT is unknown, because the
 * frames may be in the log although the sync of it failed. After a failure that is not an answer,
 * the connection is closed: what SQLite keeps in memory of a failing disk is not built upon.
 */
#include "sinks/sqlite_store.h"

#include "protocol/text.h"
#include "sinks/migrations.h"
#include "sinks/sqlite_row.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum statement {
    BEGIN_WRITE,
    COMMIT,
    ROLLBACK,
    HEAD_INSERT,
    HEAD_UPDATE,
    HEAD_CONFIRM,
    HEAD_SELECT,
    RUN_INSERT,
    EVENT_INSERT,
    KEY_INSERT,
    KEY_SELECT,
    SIGNER_INSERT,
    CHECKPOINT_INSERT,
    FIND_BY_ID,
    FIND_BY_KEY,
    FIND_EVENT,
    VERSION_SELECT,
    STATEMENT_COUNT
};

static const char *const statement_sql[STATEMENT_COUNT] = {
    [BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [HEAD_INSERT] = "INSERT INTO writers (writer, seq, hash) VALUES (?1, ?4, ?5) "
                    "ON CONFLICT DO NOTHING",
    [HEAD_UPDATE] = "UPDATE writers SET seq = ?4, hash = ?5 "
                    "WHERE writer = ?1 AND seq = ?2 AND hash = ?3",
    [HEAD_CONFIRM] = "UPDATE writers SET confirmed = confirmed + 1 "
                     "WHERE writer = ?1 AND seq = ?2 AND hash = ?3",
    [HEAD_SELECT] = "SELECT seq, hash FROM writers WHERE writer = ?1",
    [RUN_INSERT] = NULL, /* made from the layouts, as are the next three */
    [EVENT_INSERT] = NULL,
    [FIND_BY_ID] = NULL,
    [FIND_BY_KEY] = NULL,
    [FIND_EVENT] = "SELECT event_id FROM events WHERE event_id = ?1",
    [KEY_INSERT] = "INSERT INTO keys (company, idempotency_key, request_sha256, run_id) "
                   "VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    [KEY_SELECT] = "SELECT run_id, request_sha256 FROM keys "
                   "WHERE company = ?1 AND idempotency_key = ?2",
    [SIGNER_INSERT] = "INSERT INTO checkpoint_keys (key_id, public_key) VALUES (?1, ?2) "
                      "ON CONFLICT DO NOTHING",
    [CHECKPOINT_INSERT] =
        "INSERT INTO checkpoints (writer, row_hash, made_at, key_id, signature, seq) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    [VERSION_SELECT] = "SELECT max(version) FROM migrations",
};

struct sqlite_store {
    char *path;
    sqlite3 *db; /* NULL: not open */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int *gate; /* of the question at hand, for the busy handler */
    const char *problem;
};

/* ---- the connection ------------------------------------------------------------------------- */

/* The word for what SQLite said last. */
static const char *word_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return "unreachable";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "locked";
    case SQLITE_FULL:
        return "full";
    case SQLITE_READONLY:
        return "read_only";
    case SQLITE_ERROR: /* no such table, no such column */
    case SQLITE_SCHEMA:
        return "schema";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return "corrupt";
    case SQLITE_IOERR:
        return "input_output";
    case SQLITE_NOMEM:
        return "memory";
    default:
        return "failed";
    }
}

static void note_problem(struct sqlite_store *store, int code)
{
    if (store->problem[0] == '\0')
        store->problem = word_of(code);
}

static void store_close(struct sqlite_store *store)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
    (void)sqlite3_close(store->db);
    store->db = NULL;
}

/* Somebody else holds the lock: wait a little longer each time, until the deadline. */
static int wait_for_lock(void *context, int count)
{
    const struct sqlite_store *store = context;
    if (__atomic_load_n(store->gate, __ATOMIC_ACQUIRE) == GATE_ABANDONED)
        return 0;
    long ms = count < 5 ? 1 : count < 20 ? 5 : 20;
    struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
    return 1;
}

static char *made_sql(enum statement statement)
{
    AR_AUTO_FREE char *names = NULL;
    char *sql = NULL;
    if (statement == RUN_INSERT)
        return sqlite_row_insert_sql(&record_layout);
    if (statement == EVENT_INSERT)
        return sqlite_row_insert_sql(&chain_event_layout);
    names = row_names(&record_layout);
    if (!names ||
        asprintf(&sql, "SELECT %s FROM runs WHERE run_id = %s", names,
                 statement == FIND_BY_ID
                     ? "?1"
                     : "(SELECT run_id FROM keys WHERE company = ?1 AND idempotency_key = ?2)") < 0)
        return NULL;
    return sql;
}

static int prepare(struct sqlite_store *store, enum statement statement)
{
    AR_AUTO_FREE char *made = statement_sql[statement] ? NULL : made_sql(statement);
    const char *sql = made ? made : statement_sql[statement];
    if (!sql)
        return SQLITE_NOMEM;
    return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                              &store->statements[statement], NULL);
}

static int set_up(struct sqlite_store *store)
{
    int rc = sqlite3_extended_result_codes(store->db, 1);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_handler(store->db, wait_for_lock, store);
    if (rc == SQLITE_OK)
        rc = sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(store->db,
                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                          "PRAGMA trusted_schema = OFF; PRAGMA cache_size = -8192",
                          NULL, NULL, NULL);
    for (size_t i = 0; i < STATEMENT_COUNT && rc == SQLITE_OK; i++)
        rc = prepare(store, (enum statement)i);
    return rc;
}

/* A file that was moved or deleted still takes commits, but nobody will ever read them. */
static bool was_moved(struct sqlite_store *store)
{
    int moved = 0;
    int rc = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return rc == SQLITE_OK && moved;
}

static bool store_ready(struct sqlite_store *store)
{
    if (store->db && was_moved(store))
        store_close(store);
    if (store->db)
        return true;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(store->path, &store->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = set_up(store);
    if (rc == SQLITE_OK)
        return true;
    note_problem(store, rc);
    store_close(store);
    return false;
}

int sqlite_store_new(const char *path, struct sqlite_store **out)
{
    struct sqlite_store *store = calloc(1, sizeof(*store));
    if (!store)
        return -ENOMEM;
    store->problem = "";
    store->path = strdup(path);
    if (!store->path) {
        free(store);
        return -ENOMEM;
    }
    *out = store;
    return 0;
}

void sqlite_store_free(struct sqlite_store *store)
{
    if (!store)
        return;
    store_close(store);
    free(store->path);
    free(store);
}

const char *sqlite_store_problem(const struct sqlite_store *store)
{
    return store->problem;
}

/* ---- statements ----------------------------------------------------------------------------- */

static int bind_texts(sqlite3_stmt *statement, const char *const *texts, int count)
{
    for (int i = 0; i < count; i++) {
        int rc = sqlite3_bind_text(statement, i + 1, texts[i], -1, SQLITE_STATIC);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

/* Runs a statement that gives no rows: SQLITE_DONE, or what went wrong. */
static int run(struct sqlite_store *store, enum statement which)
{
    sqlite3_stmt *statement = store->statements[which];
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_DONE)
        note_problem(store, rc);
    (void)sqlite3_reset(statement);
    return rc;
}

static int run_with_texts(struct sqlite_store *store, enum statement which,
                          const char *const *texts, int count)
{
    int rc = bind_texts(store->statements[which], texts, count);
    return rc == SQLITE_OK ? run(store, which) : rc;
}

static void roll_back(struct sqlite_store *store)
{
    if (!sqlite3_get_autocommit(store->db) && run(store, ROLLBACK) != SQLITE_DONE)
        store_close(store);
}

static bool enter_commit(int *gate)
{
    int open = GATE_OPEN;
    return __atomic_compare_exchange_n(gate, &open, GATE_COMMITTING, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* ---- append --------------------------------------------------------------------------------- */

static bool bind_head(sqlite3_stmt *statement, int at, const struct sink_head *head)
{
    return sqlite3_bind_int64(statement, at, head->seq) == SQLITE_OK &&
           sqlite3_bind_text(statement, at + 1, head->hash, -1, SQLITE_STATIC) == SQLITE_OK;
}

/* Writes the head as it is, so that the commit is one. No head is what nobody else may be making. */
static enum sink_outcome confirm_head(struct sqlite_store *store, const struct sink_batch *batch)
{
    enum statement which = batch->head.seq == 0 ? HEAD_SELECT : HEAD_CONFIRM;
    sqlite3_stmt *statement = store->statements[which];
    if (sqlite3_bind_text(statement, 1, batch->writer, -1, SQLITE_STATIC) != SQLITE_OK)
        return SINK_NOT_STORED;
    if (which == HEAD_SELECT) {
        int rc = sqlite3_step(statement);
        (void)sqlite3_reset(statement);
        return rc == SQLITE_DONE ? SINK_STORED : rc == SQLITE_ROW ? SINK_CONFLICT : SINK_NOT_STORED;
    }
    if (!bind_head(statement, 2, &batch->head) || run(store, which) != SQLITE_DONE)
        return SINK_NOT_STORED;
    return sqlite3_changes(store->db) == 1 ? SINK_STORED : SINK_CONFLICT;
}

/* Moves the head of the chain: SINK_STORED when it was where the batch expects it. */
static enum sink_outcome move_head(struct sqlite_store *store, const struct sink_batch *batch,
                                   const struct sink_head *last)
{
    enum statement which = batch->head.seq == 0 ? HEAD_INSERT : HEAD_UPDATE;
    sqlite3_stmt *statement = store->statements[which];
    if (sqlite3_bind_text(statement, 1, batch->writer, -1, SQLITE_STATIC) != SQLITE_OK ||
        !bind_head(statement, 4, last) ||
        (which == HEAD_UPDATE && !bind_head(statement, 2, &batch->head)) ||
        run(store, which) != SQLITE_DONE)
        return SINK_NOT_STORED;
    return sqlite3_changes(store->db) == 1 ? SINK_STORED : SINK_CONFLICT;
}

static bool is_refusal(int rc)
{
    return (rc & 0xff) == SQLITE_CONSTRAINT || (rc & 0xff) == SQLITE_TOOBIG ||
           (rc & 0xff) == SQLITE_MISMATCH;
}

static int insert_record(struct sqlite_store *store, const struct record *record)
{
    sqlite3_stmt *statement = store->statements[RUN_INSERT];
    int rc = sqlite_row_bind(statement, &record_layout, record);
    if (rc == SQLITE_OK)
        rc = run(store, RUN_INSERT);
    if (rc != SQLITE_DONE || !record->idempotency_key)
        return rc;
    const char *key[] = {record->company, record->idempotency_key, record->request_sha256,
                         record->run_id};
    return run_with_texts(store, KEY_INSERT, key, (int)AR_COUNT(key));
}

static int insert_event(struct sqlite_store *store, const struct chain_event *event)
{
    int rc = sqlite_row_bind(store->statements[EVENT_INSERT], &chain_event_layout, event);
    return rc == SQLITE_OK ? run(store, EVENT_INSERT) : rc;
}

static enum sink_outcome insert_rows(struct sqlite_store *store, const struct sink_batch *batch,
                                     const int *gate, size_t *bad)
{
    for (size_t i = 0; i < sink_batch_rows(batch); i++) {
        if (__atomic_load_n(gate, __ATOMIC_RELAXED) == GATE_ABANDONED)
            return SINK_NOT_STORED;
        int rc = i < batch->record_count
                     ? insert_record(store, batch->records[i])
                     : insert_event(store, batch->events[i - batch->record_count]);
        if (rc == SQLITE_DONE)
            continue;
        if (!is_refusal(rc))
            return SINK_NOT_STORED;
        *bad = i;
        return SINK_REFUSED;
    }
    return SINK_STORED;
}

/* SINK_STORED, SINK_NOT_STORED or SINK_UNKNOWN; the transaction is over. */
static enum sink_outcome commit(struct sqlite_store *store, int *gate)
{
    if (!enter_commit(gate)) {
        roll_back(store);
        return SINK_NOT_STORED;
    }
    if (run(store, COMMIT) == SQLITE_DONE)
        return SINK_STORED;
    bool open = !sqlite3_get_autocommit(store->db);
    store_close(store);
    return open ? SINK_NOT_STORED : SINK_UNKNOWN;
}

static void ask_append(struct sqlite_store *store, const struct question *question, int *gate,
                       struct answer *answer)
{
    const struct sink_batch *batch = &question->batch;
    struct sink_head last = sink_batch_head(batch);
    if (run(store, BEGIN_WRITE) != SQLITE_DONE)
        return;
    answer->outcome =
        sink_batch_rows(batch) == 0 ? confirm_head(store, batch) : move_head(store, batch, &last);
    if (answer->outcome == SINK_STORED)
        answer->outcome = insert_rows(store, batch, gate, &answer->bad);
    if (answer->outcome == SINK_STORED)
        answer->outcome = commit(store, gate);
    else
        roll_back(store);
}

/* ---- the other questions -------------------------------------------------------------------- */

/* Copies a text column into a buffer that it must fill but for the NUL. */
static bool copy_column(sqlite3_stmt *statement, int at, char *out, size_t bytes)
{
    const char *text = (const char *)sqlite3_column_text(statement, at);
    if (!text || (size_t)sqlite3_column_bytes(statement, at) != bytes - 1)
        return false;
    memcpy(out, text, bytes);
    return true;
}

static void ask_head(struct sqlite_store *store, const struct question *question,
                     struct answer *answer)
{
    sqlite3_stmt *statement = store->statements[HEAD_SELECT];
    const char *texts[] = {question->writer};
    if (bind_texts(statement, texts, 1) != SQLITE_OK)
        return;
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE) {
        answer->found = SINK_ABSENT;
    } else if (rc == SQLITE_ROW && copy_column(statement, 1, answer->head.hash, DIGEST_HEX_BYTES)) {
        answer->head.seq = sqlite3_column_int64(statement, 0);
        answer->found = SINK_FOUND;
    }
    (void)sqlite3_reset(statement);
}

static void ask_find(struct sqlite_store *store, const struct question *question,
                     struct answer *answer)
{
    enum statement which = question->event_id ? FIND_EVENT
                           : question->run_id ? FIND_BY_ID
                                              : FIND_BY_KEY;
    sqlite3_stmt *statement = store->statements[which];
    const char *id[] = {question->event_id ? question->event_id : question->run_id};
    const char *key[] = {question->company, question->key};
    if (bind_texts(statement, which == FIND_BY_KEY ? key : id, which == FIND_BY_KEY ? 2 : 1) !=
        SQLITE_OK)
        return;
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_DONE)
        answer->found = SINK_ABSENT;
    else if (rc == SQLITE_ROW &&
             (which == FIND_EVENT || sqlite_row_read_record(statement, &answer->record) == 0))
        answer->found = SINK_FOUND;
    (void)sqlite3_reset(statement);
}

static void read_holder(struct sqlite_store *store, const struct question *question,
                        struct answer *answer)
{
    sqlite3_stmt *statement = store->statements[KEY_SELECT];
    const char *texts[] = {question->company, question->key};
    char request[DIGEST_HEX_BYTES];
    if (bind_texts(statement, texts, 2) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW &&
        copy_column(statement, 0, answer->holder, sizeof(answer->holder)) &&
        copy_column(statement, 1, request, sizeof(request))) {
        answer->claim =
            strcmp(answer->holder, question->run_id) == 0 ? SINK_CLAIMED : SINK_CLAIM_TAKEN;
        answer->same_request = strcmp(request, question->request_sha256) == 0;
    }
    (void)sqlite3_reset(statement);
}

static void ask_claim(struct sqlite_store *store, const struct question *question, int *gate,
                      struct answer *answer)
{
    const char *texts[] = {question->company, question->key, question->request_sha256,
                           question->run_id};
    if (run(store, BEGIN_WRITE) != SQLITE_DONE)
        return;
    if (run_with_texts(store, KEY_INSERT, texts, (int)AR_COUNT(texts)) == SQLITE_DONE)
        read_holder(store, question, answer);
    if (answer->claim == SINK_CLAIM_FAILED)
        roll_back(store);
    else if (commit(store, gate) != SINK_STORED)
        answer->claim = SINK_CLAIM_FAILED;
}

static void ask_checkpoint(struct sqlite_store *store, const struct question *question, int *gate,
                           struct answer *answer)
{
    const struct checkpoint *checkpoint = &question->checkpoint;
    char public_key[2 * CHECKPOINT_KEY_BYTES + 1], signature[2 * CHECKPOINT_SIGNATURE_BYTES + 1],
        made_at[ROW_TIME_BYTES];
    text_to_hex(checkpoint->public_key, sizeof(checkpoint->public_key), public_key);
    text_to_hex(checkpoint->signature, sizeof(checkpoint->signature), signature);
    row_time_text(checkpoint->made_at, made_at);
    const char *signer[] = {checkpoint->key_id, public_key};
    const char *texts[] = {checkpoint->writer, checkpoint->row_hash, made_at, checkpoint->key_id,
                           signature};
    if (run(store, BEGIN_WRITE) != SQLITE_DONE)
        return;
    if (run_with_texts(store, SIGNER_INSERT, signer, (int)AR_COUNT(signer)) == SQLITE_DONE &&
        sqlite3_bind_int64(store->statements[CHECKPOINT_INSERT], 6, checkpoint->seq) == SQLITE_OK &&
        run_with_texts(store, CHECKPOINT_INSERT, texts, (int)AR_COUNT(texts)) == SQLITE_DONE)
        answer->done = commit(store, gate) == SINK_STORED;
    else
        roll_back(store);
}

/* The lock for writing is taken and given back: that an append can work now, not only read. */
static void ask_probe(struct sqlite_store *store, struct answer *answer)
{
    if (run(store, BEGIN_WRITE) != SQLITE_DONE)
        return;
    sqlite3_stmt *statement = store->statements[VERSION_SELECT];
    int newest = migrations_newest(migrations_sqlite, migrations_sqlite_count);
    int rc = sqlite3_step(statement);
    answer->up = rc == SQLITE_ROW && sqlite3_column_int(statement, 0) >= newest;
    if (!answer->up)
        note_problem(store, rc == SQLITE_ROW ? SQLITE_SCHEMA : rc);
    (void)sqlite3_reset(statement);
    roll_back(store);
}

static void dispatch(struct sqlite_store *store, const struct question *question, int *gate,
                     struct answer *answer)
{
    switch (question->kind) {
    case QUESTION_APPEND:
        ask_append(store, question, gate, answer);
        return;
    case QUESTION_HEAD:
        ask_head(store, question, answer);
        return;
    case QUESTION_FIND:
        ask_find(store, question, answer);
        return;
    case QUESTION_CLAIM:
        ask_claim(store, question, gate, answer);
        return;
    case QUESTION_PROBE:
        ask_probe(store, answer);
        return;
    case QUESTION_CHECKPOINT:
        ask_checkpoint(store, question, gate, answer);
        return;
    case QUESTION_MAINTAIN: /* there is nothing to prepare */
        answer->done = true;
        return;
    }
}

static bool is_no_answer(enum question_kind kind, const struct answer *answer)
{
    switch (kind) {
    case QUESTION_APPEND:
        return answer->outcome == SINK_NOT_STORED || answer->outcome == SINK_UNKNOWN;
    case QUESTION_HEAD:
    case QUESTION_FIND:
        return answer->found == SINK_FAILED;
    case QUESTION_CLAIM:
        return answer->claim == SINK_CLAIM_FAILED;
    case QUESTION_PROBE:
        return !answer->up;
    case QUESTION_CHECKPOINT:
    case QUESTION_MAINTAIN:
        return !answer->done;
    }
    return true;
}

void sqlite_store_ask(struct sqlite_store *store, const struct question *question, int *gate,
                      struct answer *answer)
{
    store->gate = gate;
    store->problem = "";
    if (!store_ready(store))
        return;
    dispatch(store, question, gate, answer);
    if (is_no_answer(question->kind, answer)) {
        if (store->problem[0] == '\0' && __atomic_load_n(gate, __ATOMIC_RELAXED) == GATE_ABANDONED)
            store->problem = "timed_out";
        note_problem(store, sqlite3_errcode(store->db));
        store_close(store);
    } else {
        store->problem = ""; /* what went wrong was a row's, not the store's */
    }
}

/*
 * import.c - see import.h.
 *
 * Rows go in as they are. A row is sent only when its columns give its hash and it follows on the row
 * before, in the file and in the ledger. Those that the ledger has are passed over: when the last of
 * them has the hash that the ledger's has, all before it are the same, for each hash covers the one
 * before. So an import can be cut off and done again.
 */
#include "cli/import.h"

#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/store.h"
#include "protocol/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define KEY_MAX_BYTES 4096

/* ---- complaints --------------------------------------------------------------------------------- */

AR_PRINTF(3, 4)
static int bad_line(const struct import *import, int code, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return message_error(code, "line %" PRId64 ": %s", import->lines->number, text);
}

static int store_broke(const struct import *import)
{
    return message_error(EXIT_CODE_STORE,
                         "the ledger failed: %s. What is in it stays; the import may be repeated",
                         transfer_message(import->transfer));
}

static int out_of_memory(void)
{
    return message_failure(-ENOMEM, "cannot import");
}

/* ---- chains ------------------------------------------------------------------------------------- */

static struct import_chain *known_chain(struct import *import, const char *writer)
{
    size_t last = import->last_chain;
    if (last < import->chain_count && strcmp(import->chains[last].writer, writer) == 0)
        return &import->chains[last];
    for (size_t i = 0; i < import->chain_count; i++)
        if (strcmp(import->chains[i].writer, writer) == 0) {
            import->last_chain = i;
            return &import->chains[i];
        }
    return NULL;
}

/* Asks the ledger for the head of a chain that is new here. 0 with *out borrowed until the next one,
 * or an exit code after the complaint. */
static int find_chain(struct import *import, const char *writer, struct import_chain **out)
{
    *out = known_chain(import, writer);
    if (*out)
        return EXIT_CODE_OK;
    if (import->chain_count == import->chain_capacity) {
        size_t capacity = import->chain_capacity > 0 ? import->chain_capacity * 2 : 16;
        struct import_chain *chains = reallocarray(import->chains, capacity, sizeof(*chains));
        if (!chains)
            return out_of_memory();
        import->chains = chains;
        import->chain_capacity = capacity;
    }
    struct import_chain *chain = &import->chains[import->chain_count];
    *chain = (struct import_chain){0};
    memcpy(chain->writer, writer, sizeof(chain->writer));
    if (transfer_head(import->transfer, writer, &chain->stored) != TRANSFER_DONE)
        return store_broke(import);
    chain->tail = chain->stored;
    import->last_chain = import->chain_count++;
    *out = chain;
    return EXIT_CODE_OK;
}

/* ---- sending ------------------------------------------------------------------------------------ */

static void clear_batch(struct import *import)
{
    for (size_t i = 0; i < import->record_count; i++)
        record_free(import->records[i]);
    for (size_t i = 0; i < import->event_count; i++)
        chain_event_free(import->events[i]);
    import->record_count = import->event_count = 0;
}

static int append_failed(const struct import *import, const struct sink_batch *batch, int rc,
                         size_t bad)
{
    const char *id = "";
    if (bad < batch->record_count)
        id = batch->records[bad]->run_id;
    else if (bad - batch->record_count < batch->event_count)
        id = batch->events[bad - batch->record_count]->event_id;
    switch (rc) {
    case TRANSFER_CONFLICT:
        return message_error(
            EXIT_CODE_NO,
            "the chain of writer %s has moved meanwhile: does its daemon append to "
            "this ledger? Import with the daemons stopped",
            batch->writer);
    case TRANSFER_REFUSED:
        return message_error(EXIT_CODE_NO, "the ledger refuses a row of writer %s%s%s%s",
                             batch->writer, id[0] ? ": is " : "", id,
                             id[0] ? " there already, in another chain?" : "");
    case TRANSFER_FAILED:
        return store_broke(import);
    default:
        return message_failure(rc, "cannot import");
    }
}

static int send_rows(struct import *import)
{
    size_t bad = 0;
    if (import->record_count + import->event_count == 0)
        return EXIT_CODE_OK;
    struct import_chain *chain = known_chain(import, import->batch_writer);
    const struct sink_batch batch = {.writer = import->batch_writer,
                                     .head = chain->stored,
                                     .records = import->records,
                                     .record_count = import->record_count,
                                     .events = import->events,
                                     .event_count = import->event_count};
    int rc = transfer_append(import->transfer, &batch, &bad);
    if (rc != TRANSFER_DONE)
        return append_failed(import, &batch, rc, bad);
    import->rows_taken += (int64_t)sink_batch_rows(&batch);
    chain->stored = chain->tail;
    clear_batch(import);
    return EXIT_CODE_OK;
}

static const char *text_of(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static int send_keys(struct import *import)
{
    struct transfer_key keys[TRANSFER_MAX_KEYS];
    size_t bad = 0;
    for (size_t i = 0; i < import->key_count; i++)
        keys[i] =
            (struct transfer_key){.company = text_of(import->keys[i], "company"),
                                  .idempotency_key = text_of(import->keys[i], "idempotency_key"),
                                  .request_sha256 = text_of(import->keys[i], "request_sha256"),
                                  .run_id = text_of(import->keys[i], "run_id")};
    int rc = import->key_count > 0 ? transfer_keys(import->transfer, keys, import->key_count, &bad)
                                   : TRANSFER_DONE;
    if (rc == TRANSFER_CONFLICT)
        return message_error(EXIT_CODE_NO,
                             "an idempotency key of run %s belongs to another run in this ledger",
                             keys[bad].run_id);
    if (rc != TRANSFER_DONE)
        return store_broke(import);
    import->keys_taken += (int64_t)import->key_count;
    while (import->key_count > 0)
        json_decref(import->keys[--import->key_count]);
    return EXIT_CODE_OK;
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* What both kinds of rows have. */
struct row {
    const char *writer, *prev_hash, *row_hash;
    int64_t seq;
};

static int differs(const struct import *import, const struct row *row)
{
    return bad_line(import, EXIT_CODE_NO,
                    "the ledger has another row %" PRId64 " of writer %s, or another one before it",
                    row->seq, row->writer);
}

/* Does the row follow on the one before it in the file? */
static int check_link(const struct import *import, const struct import_chain *chain,
                      const struct row *row)
{
    const struct sink_head *seen = &chain->seen;
    const char *before = seen->seq > 0 ? seen->hash : digest_zero;
    if (seen->seq == 0 && row->seq > 1)
        return EXIT_CODE_OK;
    if (row->seq <= seen->seq)
        return bad_line(import, EXIT_CODE_NO,
                        "row %" PRId64 " of writer %s comes twice, or out of its order", row->seq,
                        row->writer);
    if (row->seq > seen->seq + 1)
        return bad_line(import, EXIT_CODE_NO,
                        "row %" PRId64 " of writer %s comes after row %" PRId64
                        ": what was between is missing. Was a partition retired?",
                        row->seq, row->writer, seen->seq);
    if (strcmp(row->prev_hash, before) != 0)
        return bad_line(import, EXIT_CODE_NO,
                        "row %" PRId64 " of writer %s does not follow on the row before", row->seq,
                        row->writer);
    return EXIT_CODE_OK;
}

/* A row that the ledger has, or must have: is it the same? */
static int pass_over(struct import *import, struct import_chain *chain, const struct row *row)
{
    if (row->seq == chain->tail.seq && strcmp(row->row_hash, chain->tail.hash) != 0)
        return differs(import, row);
    chain->unsettled = row->seq < chain->tail.seq;
    import->rows_there++;
    return EXIT_CODE_OK;
}

/* 0 with *wanted: whether it is to be sent; or an exit code after the complaint. */
static int place_row(struct import *import, const struct row *row, bool *wanted)
{
    struct import_chain *chain = NULL;
    int code = find_chain(import, row->writer, &chain);
    if (code == EXIT_CODE_OK)
        code = check_link(import, chain, row);
    if (code != EXIT_CODE_OK)
        return code;
    chain->seen.seq = row->seq;
    memcpy(chain->seen.hash, row->row_hash, sizeof(chain->seen.hash));
    *wanted = row->seq > chain->tail.seq;
    if (!*wanted)
        return pass_over(import, chain, row);
    if (row->seq != chain->tail.seq + 1)
        return bad_line(import, EXIT_CODE_NO,
                        "the ledger ends at row %" PRId64
                        " of writer %s, the file goes on at %" PRId64,
                        chain->tail.seq, row->writer, row->seq);
    if (chain->tail.seq > 0 && strcmp(row->prev_hash, chain->tail.hash) != 0)
        return differs(import, row);
    bool full = import->record_count + import->event_count == SINK_MAX_BATCH;
    if (full || strcmp(import->batch_writer, row->writer) != 0)
        code = send_rows(import);
    memcpy(import->batch_writer, chain->writer, sizeof(import->batch_writer));
    chain->tail = chain->seen;
    return code;
}

static int check_hash(const struct import *import, int rc, const struct row *row)
{
    if (rc < 0)
        return message_failure(rc, "cannot compute a hash");
    if (rc > 0)
        return bad_line(import, EXIT_CODE_NO,
                        "row %" PRId64
                        " of writer %s was altered: its columns do not give its hash",
                        row->seq, row->writer);
    return EXIT_CODE_OK;
}

static int misshapen(const struct import *import, const char *what, const struct fault *fault)
{
    return bad_line(import, EXIT_CODE_NO_INPUT, "it is no %s: %s %s", what,
                    fault->path[0] ? fault->path : "it", problem_word(fault->problem));
}

static int take_run(struct import *import, const json_t *value)
{
    AR_CLEANUP(record_cleanup) struct record *record = NULL;
    struct fault fault = {0};
    bool wanted = false;
    int rc = record_from_json(value, false, &record, &fault);
    if (rc < 0)
        return out_of_memory();
    if (rc > 0)
        return misshapen(import, "run", &fault);
    const struct row row = {record->writer, record->prev_hash, record->row_hash, record->seq};
    int code = check_hash(import, record_check(record), &row);
    if (code == EXIT_CODE_OK)
        code = place_row(import, &row, &wanted);
    if (code == EXIT_CODE_OK && wanted)
        import->records[import->record_count++] = AR_TAKE(record);
    return code;
}

static int take_event(struct import *import, const json_t *value)
{
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = NULL;
    struct fault fault = {0};
    bool wanted = false;
    int rc = chain_event_from_json(value, &event, &fault);
    if (rc < 0)
        return out_of_memory();
    if (rc > 0)
        return misshapen(import, "event", &fault);
    const struct row row = {event->writer, event->prev_hash, event->row_hash, event->seq};
    int code = check_hash(import, chain_event_check(event), &row);
    if (code == EXIT_CODE_OK)
        code = place_row(import, &row, &wanted);
    if (code == EXIT_CODE_OK && wanted)
        import->events[import->event_count++] = AR_TAKE(event);
    return code;
}

/* ---- what stands behind the rows ---------------------------------------------------------------- */

static int take_checkpoint(struct import *import, const json_t *value)
{
    struct checkpoint checkpoint;
    struct fault fault = {0};
    if (checkpoint_from_json(value, &checkpoint, &fault) != 0)
        return misshapen(import, "checkpoint", &fault);
    int rc = checkpoint_verify(&checkpoint);
    if (rc < 0)
        return message_failure(rc, "cannot check a signature");
    if (rc > 0)
        return bad_line(import, EXIT_CODE_NO, "the signature of the checkpoint is wrong");
    int code = send_rows(import);
    if (code != EXIT_CODE_OK)
        return code;
    if (transfer_checkpoint(import->transfer, &checkpoint) != TRANSFER_DONE)
        return store_broke(import);
    import->checkpoints_taken++;
    return EXIT_CODE_OK;
}

static int take_key(struct import *import, json_t *value)
{
    static const struct json_member members[] = {
        {"company", true}, {"idempotency_key", true}, {"request_sha256", true}, {"run_id", true}};
    const char *texts[AR_COUNT(members)] = {"", "", "", ""};
    struct fault fault = {0};
    int rc = json_check_object(value, members, AR_COUNT(members), NULL, &fault);
    for (size_t i = 0; i < AR_COUNT(members) && rc == 0; i++)
        rc = json_read_line(value, members[i].name, NULL, 1, KEY_MAX_BYTES, &texts[i], &fault);
    if (rc != 0)
        return misshapen(import, "key", &fault);
    if (!digest_is_hex(texts[2]) || !uuid7_is_valid(texts[3]))
        return bad_line(import, EXIT_CODE_NO_INPUT,
                        "it is no key: a digest and an id are expected");
    int code = import->key_count == TRANSFER_MAX_KEYS ? send_keys(import) : EXIT_CODE_OK;
    if (code == EXIT_CODE_OK)
        import->keys[import->key_count++] = json_incref(value);
    return code;
}

/* The export says that the chain ended here. */
static int take_head(struct import *import, const json_t *value)
{
    static const struct json_member members[] = {{"writer", true}, {"seq", true}, {"hash", true}};
    struct import_chain *chain = NULL;
    struct fault fault = {0};
    const char *writer = "", *hash = "";
    int64_t seq = 0;
    if (json_check_object(value, members, AR_COUNT(members), NULL, &fault) ||
        json_read_line(value, "writer", NULL, 1, UUID7_TEXT_BYTES - 1, &writer, &fault) ||
        json_read_integer(value, "seq", NULL, 1, INT64_MAX, &seq, &fault) ||
        json_read_line(value, "hash", NULL, 1, DIGEST_HEX_BYTES - 1, &hash, &fault))
        return misshapen(import, "head", &fault);
    if (!uuid7_is_uuid(writer) || !digest_is_hex(hash))
        return bad_line(import, EXIT_CODE_NO_INPUT,
                        "it is no head: an id and a digest are expected");
    int code = find_chain(import, writer, &chain);
    if (code != EXIT_CODE_OK)
        return code;
    const struct sink_head *last = chain->seen.seq > 0 ? &chain->seen : &chain->tail;
    if (last->seq < seq)
        return bad_line(import, EXIT_CODE_NO,
                        "rows %" PRId64 " to %" PRId64 " of writer %s are missing in the file",
                        last->seq + 1, seq, writer);
    if (last->seq == seq && strcmp(last->hash, hash) != 0)
        return bad_line(import, EXIT_CODE_NO, "the chain of writer %s has another head", writer);
    return EXIT_CODE_OK;
}

/* ---- lines -------------------------------------------------------------------------------------- */

static int take_value(struct import *import, json_t *root)
{
    const char *word = json_object_iter_key(json_object_iter(root));
    json_t *value = json_object_iter_value(json_object_iter(root));
    if (json_object_size(root) != 1)
        return bad_line(import, EXIT_CODE_NO_INPUT, "it is not of an export");
    if (strcmp(word, "run") == 0)
        return take_run(import, value);
    if (strcmp(word, "event") == 0)
        return take_event(import, value);
    if (strcmp(word, "checkpoint") == 0)
        return take_checkpoint(import, value);
    if (strcmp(word, "key") == 0)
        return take_key(import, value);
    if (strcmp(word, "head") == 0)
        return take_head(import, value);
    return bad_line(import, EXIT_CODE_NO_INPUT, "it is not of an export");
}

static int take_line(struct import *import, bool torn)
{
    struct json_document document;
    int rc = json_parse(import->lines->text, import->lines->length, &document);
    if (rc < 0)
        return out_of_memory();
    int code = EXIT_CODE_NO_INPUT;
    if (rc == JSON_OK)
        code = take_value(import, document.root);
    else
        code = bad_line(import, code, "%s",
                        torn ? "it is torn: auditrun ledger export --resume mends the file"
                             : "it is no line of JSON");
    json_document_free(&document);
    progress_step(&import->progress);
    return code;
}

static int take_lines(struct import *import)
{
    int code = EXIT_CODE_OK, rc = 0;
    while (code == EXIT_CODE_OK && ((rc = lines_next(import->lines)) == 0 || rc == LINES_TORN))
        code = take_line(import, rc == LINES_TORN);
    if (code != EXIT_CODE_OK)
        return code;
    if (rc < 0)
        return message_error(EXIT_CODE_NO_INPUT, "cannot read the file: %s", strerror(-rc));
    return rc == LINES_TOO_LONG
               ? bad_line(import, EXIT_CODE_NO_INPUT, "it is too long for an export")
               : EXIT_CODE_OK;
}

/* ---- rows that were passed over, where the file ends before the ledger does ------------------------ */

/* The hash of a row of the ledger: 0, 1 it has none there, or as of reader_walk_next(). */
static int stored_hash(struct reader *reader, const struct import_chain *chain,
                       char hash[DIGEST_HEX_BYTES])
{
    AR_CLEANUP(record_cleanup) struct record *record = NULL;
    AR_CLEANUP(chain_event_cleanup) struct chain_event *event = NULL;
    struct reader_filter filter = READER_FILTER_ALL;
    filter.writer = filter.after_writer = chain->writer;
    filter.after_seq = chain->seen.seq - 1;
    int rc = reader_query(reader, &filter, READER_BY_CHAIN);
    if (rc == 0)
        rc = reader_next(reader, &record);
    if (rc == 0 && record->seq == chain->seen.seq) {
        memcpy(hash, record->row_hash, DIGEST_HEX_BYTES);
        return 0;
    }
    if (rc == 0 || rc == 1)
        rc = reader_query_events(reader, &filter, READER_BY_CHAIN);
    if (rc == 0)
        rc = reader_next_event(reader, &event);
    if (rc != 0)
        return rc;
    if (event->seq != chain->seen.seq)
        return 1;
    memcpy(hash, event->row_hash, DIGEST_HEX_BYTES);
    return 0;
}

static int settle(struct reader *reader, const struct import_chain *chain)
{
    char hash[DIGEST_HEX_BYTES] = "";
    int rc = stored_hash(reader, chain, hash);
    if (rc != 0 && rc != 1)
        return store_failed(reader, rc);
    if (rc == 0 && strcmp(hash, chain->seen.hash) == 0)
        return EXIT_CODE_OK;
    return message_error(EXIT_CODE_NO, "the ledger has another row %" PRId64 " of writer %s",
                         chain->seen.seq, chain->writer);
}

static int settle_all(struct import *import)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    char message[READER_MESSAGE_BYTES];
    int code = EXIT_CODE_OK;
    for (size_t i = 0; i < import->chain_count && code == EXIT_CODE_OK; i++) {
        if (!import->chains[i].unsettled)
            continue;
        int rc = reader ? 0 : reader_open(import->url, &reader, message);
        if (rc < 0)
            return message_failure(rc, "cannot read the ledger");
        code = rc == 0 ? settle(reader, &import->chains[i])
                       : store_says("cannot read the ledger", message);
    }
    return code;
}

int import_all(struct import *import)
{
    progress_begin(&import->progress, 0);
    int code = take_lines(import);
    if (code == EXIT_CODE_OK)
        code = send_rows(import);
    if (code == EXIT_CODE_OK)
        code = send_keys(import);
    if (code == EXIT_CODE_OK)
        code = settle_all(import);
    progress_end(&import->progress);
    return code;
}

void import_end(struct import *import)
{
    clear_batch(import);
    while (import->key_count > 0)
        json_decref(import->keys[--import->key_count]);
    free(import->chains);
}

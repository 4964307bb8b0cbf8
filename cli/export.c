/*
 * export.c - see export.h.
 *
 * A whole export is: the rows of each chain in their order, runs and events; then all checkpoints, in
 * the order of the chains; all idempotency keys; and the head of each chain, with which whoever reads
 * it knows that nothing is missing. Runs and events come from two readers. The one for the runs was
 * frozen first, and no row behind the heads that it sees is written, so that both tell of one moment.
 */
#include "cli/export.h"

#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/store.h"
#include "protocol/text.h"
#include "sinks/key_list.h"

#include <string.h>

struct head {
    const char *writer; /* borrowed from the list of writers */
    int64_t seq;        /* 0: the store keeps none */
    char hash[DIGEST_HEX_BYTES];
};

struct heads {
    struct text_list writers;
    struct head *items; /* one for each writer */
};

static void heads_free(struct heads *heads)
{
    text_list_free(&heads->writers);
    free(heads->items);
}

bool export_is_whole(const struct run_filter *filter)
{
    const struct reader_filter *f = &filter->filter;
    return !f->company && !f->actor && !f->status && !f->code_sha256 && !filter->code_hash &&
           f->since == ROW_NULL && f->until == ROW_NULL && filter->limit <= 0;
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* Takes over value. {"word":value} */
static int write_json(struct export *export, const char *word, json_t *value)
{
    AR_AUTO_JSON json_t *owned = value;
    AR_AUTO_FREE char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;
    if (!text)
        return message_failure(-ENOMEM, "cannot write a row");
    if (fprintf(export->out, "{\"%s\":%s}\n", word, text) < 0)
        return message_error(EXIT_CODE_OUTPUT, "cannot write the output: %s", strerror(errno));
    return EXIT_CODE_OK;
}

/* Null is an empty field; an empty text is quoted. */
static void write_field(FILE *out, const char *text)
{
    if (!text)
        return;
    if (text[0] != '\0' && strcspn(text, "\", \r\n") == strlen(text)) {
        (void)fputs(text, out);
        return;
    }
    (void)putc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)putc('"', out);
        (void)putc(*text, out);
    }
    (void)putc('"', out);
}

static int write_csv(struct export *export, const struct record *record)
{
    char scratch[ROW_SCRATCH_BYTES];
    for (size_t i = 0; i < record_layout.count; i++) {
        if (i > 0)
            (void)putc(',', export->out);
        write_field(export->out, row_text(&record_layout, record, i, scratch));
    }
    if (fputs("\n", export->out) < 0)
        return message_error(EXIT_CODE_OUTPUT, "cannot write the output: %s", strerror(errno));
    return EXIT_CODE_OK;
}

static void write_titles(FILE *out)
{
    for (size_t i = 0; i < record_layout.count; i++)
        (void)fprintf(out, "%s%s", i > 0 ? "," : "", record_layout.columns[i].name);
    (void)fputs("\n", out);
}

static int write_run(struct export *export, const struct record *record)
{
    progress_step(&export->progress);
    if (!run_filter_matches(&export->filter, record))
        return EXIT_CODE_OK;
    export->runs++;
    return export->csv ? write_csv(export, record)
                       : write_json(export, "run", record_to_json(record));
}

static int write_event(struct export *export, const struct chain_event *event)
{
    progress_step(&export->progress);
    export->events++;
    return write_json(export, "event", chain_event_to_json(event));
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* Runs of a query to its end. */
static int write_runs(struct export *export)
{
    for (;;) {
        AR_CLEANUP(record_cleanup) struct record *record = NULL;
        int rc = reader_next(export->reader, &record);
        if (rc != 0)
            return rc == 1 ? EXIT_CODE_OK : store_failed(export->reader, rc);
        int code = write_run(export, record);
        if (code != EXIT_CODE_OK)
            return code;
    }
}

/* The rows of a chain that are next in both tables; NULL at the end of one. */
struct merge {
    struct reader *events; /* NULL: no events */
    struct record *record;
    struct chain_event *event;
};

static void merge_end(struct merge *merge)
{
    record_free(merge->record);
    chain_event_free(merge->event);
}

/* 0, or an exit code after the complaint. */
static int fill(struct export *export, struct merge *merge, bool run, bool event)
{
    int rc = run ? reader_next(export->reader, &merge->record) : 0;
    if (rc != 0 && rc != 1)
        return store_failed(export->reader, rc);
    rc = event && merge->events ? reader_next_event(merge->events, &merge->event) : 0;
    return rc == 0 || rc == 1 ? EXIT_CODE_OK : store_failed(merge->events, rc);
}

/* Rows up to a seq, in the order of the chain. */
static int write_merged(struct export *export, struct merge *merge, int64_t last)
{
    int code = fill(export, merge, true, true);
    while (code == EXIT_CODE_OK && (merge->record || merge->event)) {
        AR_CLEANUP(record_cleanup) struct record *record = NULL;
        AR_CLEANUP(chain_event_cleanup) struct chain_event *event = NULL;
        if (!merge->event || (merge->record && merge->record->seq <= merge->event->seq))
            record = AR_TAKE(merge->record);
        else
            event = AR_TAKE(merge->event);
        int64_t seq = record ? record->seq : event->seq;
        if (seq > last)
            return EXIT_CODE_OK;
        code = record ? write_run(export, record) : write_event(export, event);
        if (code == EXIT_CODE_OK)
            code = fill(export, merge, record != NULL, event != NULL);
    }
    return code;
}

static int write_chain(struct export *export, struct reader *events, const struct head *head)
{
    AR_CLEANUP(merge_end) struct merge merge = {.events = events};
    const struct export_place *place = export_places_find(&export->from, head->writer);
    struct reader_filter filter = export->filter.filter;
    filter.writer = head->writer;
    if (place && place->seq > 0) {
        filter.after_writer = head->writer;
        filter.after_seq = place->seq;
    }
    int rc = reader_query(export->reader, &filter, READER_BY_CHAIN);
    if (rc != 0)
        return store_failed(export->reader, rc);
    rc = events ? reader_query_events(events, &filter, READER_BY_CHAIN) : 0;
    if (rc != 0)
        return store_failed(events, rc);
    return write_merged(export, &merge, head->seq > 0 ? head->seq : INT64_MAX);
}

/* ---- what stands behind the rows ---------------------------------------------------------------- */

static bool is_written(const struct export_place *place, const struct checkpoint *checkpoint)
{
    if (!place || checkpoint->seq != place->checkpoint_seq)
        return place && checkpoint->seq < place->checkpoint_seq;
    return strcmp(checkpoint->key_id, place->checkpoint_key) <= 0;
}

static int write_checkpoints(struct export *export)
{
    struct checkpoint checkpoint;
    int rc = reader_query_checkpoints(export->reader, &export->filter.filter);
    while (rc == 0 && (rc = reader_next_checkpoint(export->reader, &checkpoint)) == 0) {
        if (is_written(export_places_find(&export->from, checkpoint.writer), &checkpoint))
            continue;
        int code = write_json(export, "checkpoint", checkpoint_to_json(&checkpoint));
        if (code != EXIT_CODE_OK)
            return code;
        export->checkpoints++;
    }
    return rc == 1 ? EXIT_CODE_OK : store_failed(export->reader, rc);
}

static int write_keys(struct export *export)
{
    AR_CLEANUP(key_list_cleanup) struct key_list *list = NULL;
    char message[READER_MESSAGE_BYTES];
    struct key_list_item item;
    int rc = key_list_open(export->url, &list, message);
    while (rc == 0 && (rc = key_list_next(list, &item, message)) == 0) {
        int code = write_json(export, "key",
                              json_pack("{s:s, s:s, s:s, s:s}", "company", item.company,
                                        "idempotency_key", item.idempotency_key, "request_sha256",
                                        item.request_sha256, "run_id", item.run_id));
        if (code != EXIT_CODE_OK)
            return code;
        export->keys++;
    }
    if (rc < 0)
        return message_failure(rc, "cannot read the keys");
    return list && rc == 1 ? EXIT_CODE_OK : store_says("cannot read the keys", message);
}

static int write_heads(struct export *export, const struct heads *heads)
{
    int code = EXIT_CODE_OK;
    for (size_t i = 0; i < heads->writers.count && code == EXIT_CODE_OK; i++) {
        const struct head *head = &heads->items[i];
        if (head->seq > 0)
            code = write_json(export, "head",
                              json_pack("{s:s, s:I, s:s}", "writer", head->writer, "seq",
                                        (json_int_t)head->seq, "hash", head->hash));
    }
    return code;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

/* The chains that are asked for, with their heads. 0, or an exit code after the complaint. */
static int read_heads(struct export *export, struct heads *heads)
{
    const char *only = export->filter.filter.writer;
    int rc = only ? text_list_add(&heads->writers, only)
                  : reader_writers(export->reader, &heads->writers.items, &heads->writers.count);
    if (rc == 0) {
        heads->items = calloc(heads->writers.count + 1, sizeof(*heads->items));
        rc = heads->items ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < heads->writers.count && rc == 0; i++) {
        struct head *head = &heads->items[i];
        head->writer = heads->writers.items[i];
        rc = reader_head(export->reader, head->writer, &head->seq, head->hash);
        if (rc == 1)
            rc = 0;
    }
    return rc == 0 ? EXIT_CODE_OK : store_failed(export->reader, rc);
}

/* The second reader, which sees what the first one does, and maybe more. */
static int open_events(struct export *export, struct reader **out)
{
    char message[READER_MESSAGE_BYTES];
    int rc = reader_open(export->url, out, message);
    if (rc < 0)
        return message_failure(rc, "cannot open the ledger");
    if (rc > 0)
        return store_says("cannot open the ledger", message);
    rc = reader_freeze(*out);
    return rc == 0 ? EXIT_CODE_OK : store_failed(*out, rc);
}

static int write_chains(struct export *export)
{
    AR_CLEANUP(store_cleanup) struct reader *events = NULL;
    AR_CLEANUP(heads_free) struct heads heads = {0};
    bool whole = export_is_whole(&export->filter) && !export->csv;
    int code = read_heads(export, &heads);
    if (code == EXIT_CODE_OK && whole)
        code = open_events(export, &events);
    for (size_t i = 0; i < heads.writers.count && code == EXIT_CODE_OK; i++)
        code = write_chain(export, events, &heads.items[i]);
    if (code == EXIT_CODE_OK && whole)
        code = write_checkpoints(export);
    if (code == EXIT_CODE_OK && whole && !export->filter.filter.writer)
        code = write_keys(export);
    if (code == EXIT_CODE_OK && whole)
        code = write_heads(export, &heads);
    return code;
}

/* The newest so many, of whatever chain. */
static int write_newest(struct export *export)
{
    struct reader_filter filter = export->filter.filter;
    filter.limit = export->filter.code_hash ? ROW_NULL : export->filter.limit;
    int rc = reader_query(export->reader, &filter, READER_BY_CHAIN);
    return rc == 0 ? write_runs(export) : store_failed(export->reader, rc);
}

int export_write(struct export *export)
{
    int rc = reader_freeze(export->reader);
    if (rc != 0)
        return store_failed(export->reader, rc);
    progress_begin(&export->progress, reader_estimate(export->reader));
    if (export->csv && export->titles)
        write_titles(export->out);
    int code = export->filter.limit > 0 ? write_newest(export) : write_chains(export);
    progress_end(&export->progress);
    reader_thaw(export->reader);
    return code;
}

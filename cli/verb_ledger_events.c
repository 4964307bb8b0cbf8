/*
 * verb_ledger_events.c - auditrun ledger events: what the daemons say of themselves, newest first.
 *
 * One event is in memory at a time (a table holds a batch of short cells).
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"
#include "cli/store.h"
#include "cli/table.h"
#include "cli/verb.h"

#include <inttypes.h>

#define LIMIT_FOR_TABLE 50

static const char help[] =
    "usage: auditrun ledger events [OPTIONS]\n"
    "\n"
    "Lists what the daemons say of themselves, the newest first: started, stopped, reloaded,\n"
    "switched, executor_registered, key_changed, gap, clock_stepped, partition_retired. So a "
    "quiet\n"
    "hour can be told from a daemon that was off.\n"
    "\n"
    "  --kind KIND          only events of this kind\n"
    "  --writer ID          only events of this writer\n"
    "  --since TIME         only events that happened at this time or later,\n"
    "  --until TIME         and before this one: 2026-01-31, 2026-01-31T12:00:00Z, or 2h (ago)\n"
    "  --limit N            so many; 0: all (default: 50, with --json: all)\n"
    "  --json               each event as a line of JSON\n" STORE_OPTION_HELP "\n"
    "Exit code: 0; 2 the store failed; 64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger events --since 1d\n"
    "  auditrun ledger events --json --kind started | jq -r .happened_at\n"
    "  auditrun ledger events --kind gap\n";

struct given {
    struct store_options store; /* first */
    struct reader_filter filter;
    int64_t limit; /* OPTIONS_UNSET: the default; 0: all */
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    {"kind", OPTION_TEXT, offsetof(struct given, filter.kind)},
    {"writer", OPTION_TEXT, offsetof(struct given, filter.writer)},
    {"since", OPTION_TIME, offsetof(struct given, filter.since)},
    {"until", OPTION_TIME, offsetof(struct given, filter.until)},
    {"limit", OPTION_COUNT, offsetof(struct given, limit)},
};

enum {
    COLUMN_HAPPENED,
    COLUMN_KIND,
    COLUMN_LATE,
    COLUMN_WRITER,
    COLUMN_SEQ,
    COLUMN_DETAIL, /* last: nothing is padded to the longest of them */
    COLUMN_COUNT
};

static const struct table_column columns[COLUMN_COUNT] = {
    [COLUMN_HAPPENED] = {"HAPPENED (UTC)", false, 0, 0}, [COLUMN_KIND] = {"KIND", false, 0, 0},
    [COLUMN_DETAIL] = {"DETAIL", false, 24, 1},          [COLUMN_LATE] = {"LATE", false, 0, 4},
    [COLUMN_WRITER] = {"WRITER", false, 8, 3},           [COLUMN_SEQ] = {"SEQ", true, 0, 2},
};

static enum terminal_style style_of(enum event_kind kind)
{
    return kind == EVENT_GAP || kind == EVENT_CLOCK_STEPPED || kind == EVENT_PARTITION_RETIRED
               ? TERMINAL_WARN
               : TERMINAL_PLAIN;
}

static int add_row(struct table *table, const struct chain_event *event)
{
    char happened[SHOW_TEXT_BYTES], seq[SHOW_TEXT_BYTES];
    (void)show_time(event->happened_at, happened);
    (void)snprintf(seq, sizeof(seq), "%" PRId64, event->seq);
    const struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_HAPPENED] = {happened, TERMINAL_DIM},
        [COLUMN_KIND] = {event_kind_word(event->kind), style_of(event->kind)},
        [COLUMN_DETAIL] = {event->detail, TERMINAL_PLAIN},
        [COLUMN_LATE] = {event->late ? "late" : "", TERMINAL_PLAIN},
        [COLUMN_WRITER] = {event->writer, TERMINAL_DIM},
        [COLUMN_SEQ] = {seq, TERMINAL_DIM},
    };
    return table_add(table, cells);
}

/* table NULL: as JSON. 0 or an exit code after the complaint. */
static int print_row(struct table *table, const struct chain_event *event)
{
    if (table) {
        int rc = add_row(table, event);
        return rc == 0 ? EXIT_CODE_OK : message_failure(rc, "cannot print an event");
    }
    AR_AUTO_JSON json_t *value = chain_event_to_json(event);
    return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print an event");
}

static int print_rows(struct reader *reader, struct table *table, int64_t *count)
{
    for (;; ++*count) {
        AR_CLEANUP(chain_event_cleanup) struct chain_event *event = NULL;
        int rc = reader_next_event(reader, &event);
        if (rc == 1)
            return EXIT_CODE_OK;
        if (rc != 0)
            return store_failed(reader, rc);
        int code = print_row(table, event);
        if (code != EXIT_CODE_OK)
            return code;
    }
}

static int list(const struct given *given, struct table *table)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    struct reader_filter filter = given->filter;
    int64_t count = 0;
    int code = store_open(&given->store, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    filter.limit = given->limit == 0 ? ROW_NULL : given->limit;
    int rc = reader_query_events(reader, &filter, READER_NEWEST_FIRST);
    if (rc != 0)
        return store_failed(reader, rc);
    code = print_rows(reader, table, &count);
    if (table)
        table_flush(table);
    if (count == given->limit && table && isatty(STDERR_FILENO) == 1)
        (void)message_error(0, "the newest %" PRId64 " events; --limit 0 shows all", given->limit);
    return code;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(table_cleanup) struct table *table = NULL;
    struct given *given = target;
    struct terminal terminal;
    enum event_kind kind;
    (void)rest;
    if (given->filter.kind && !event_kind_from_word(given->filter.kind, &kind))
        return message_usage(title, "--kind takes started, stopped, reloaded, switched, "
                                    "executor_registered, key_changed, gap, clock_stepped or "
                                    "partition_retired");
    if (given->filter.writer && !uuid7_is_uuid(given->filter.writer))
        return message_usage(title, "--writer takes a UUID in lower case");
    if (given->limit == OPTIONS_UNSET)
        given->limit = given->store.json ? 0 : LIMIT_FOR_TABLE;
    terminal_open(&terminal, stdout);
    int rc = given->store.json ? 0 : table_new(columns, COLUMN_COUNT, &terminal, &table);
    return rc == 0 ? list(given, table) : message_failure(rc, "cannot print a table");
}

static const struct given defaults = {
    .filter = {.since = ROW_NULL, .until = ROW_NULL, .limit = ROW_NULL},
    .limit = OPTIONS_UNSET,
};

const struct verb verb_ledger_events = {
    .group = "ledger",
    .name = "events",
    .summary = "list what the daemons say of themselves",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};

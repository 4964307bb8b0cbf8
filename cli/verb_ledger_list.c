/*
 * verb_ledger_list.c - auditrun ledger list: the rows of the ledger, newest first.
 *
 * One row is in memory at a time (a table holds a batch of short cells).
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/run_filter.h"
#include "cli/show.h"
#include "cli/store.h"
#include "cli/table.h"
#include "cli/verb.h"

#include <inttypes.h>
#include <string.h>

#define LIMIT_FOR_TABLE 50
#define HASH_COLUMNS    12

static const char help[] =
    "usage: auditrun ledger list [OPTIONS]\n"
    "\n"
    "Lists the runs in the ledger, the newest first. Columns that do not fit the terminal are "
    "left\n"
    "out; auditrun ledger show RUN_ID has everything.\n"
    "\n" RUN_FILTER_HELP
    "  --limit N            so many rows; 0: all (default: 50, with --json: all)\n"
    "  --json               each record as a line of JSON\n" STORE_OPTION_HELP "\n"
    "Exit code: 0; 2 the store failed; 64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger list --since 2h --status capability_denied\n"
    "  auditrun ledger list --company acme --limit 10\n"
    "  auditrun ledger list --json --code-hash 5d41402abc4b | jq -r .actor | sort | uniq -c\n";

struct list_options {
    struct store_options store; /* first */
    struct run_filter runs;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    RUN_FILTER_ROWS(struct list_options, runs),
};

enum {
    COLUMN_RECEIVED,
    COLUMN_RUN,
    COLUMN_STATUS,
    COLUMN_REASON,
    COLUMN_EXIT,
    COLUMN_TOOK,
    COLUMN_LANGUAGE,
    COLUMN_CODE,
    COLUMN_COMPANY,
    COLUMN_ACTOR,
    COLUMN_PURPOSE,
    COLUMN_SEQ,
    COLUMN_COUNT
};

/* What stays in 80 columns: run, status, language, code. */
static const struct table_column columns[COLUMN_COUNT] = {
    [COLUMN_RECEIVED] = {"RECEIVED (UTC)", false, 0, 5},
    [COLUMN_RUN] = {"RUN", false, 0, 0},
    [COLUMN_STATUS] = {"STATUS", false, 0, 0},
    [COLUMN_REASON] = {"REASON", false, 0, 4},
    [COLUMN_EXIT] = {"EXIT", true, 0, 6},
    [COLUMN_TOOK] = {"TOOK", true, 0, 7},
    [COLUMN_LANGUAGE] = {"LANGUAGE", false, 6, 2},
    [COLUMN_CODE] = {"CODE", false, 0, 1},
    [COLUMN_COMPANY] = {"COMPANY", false, 8, 3},
    [COLUMN_ACTOR] = {"ACTOR", false, 8, 8},
    [COLUMN_PURPOSE] = {"PURPOSE", false, 10, 9},
    [COLUMN_SEQ] = {"SEQ", true, 0, 10},
};

static void took(const struct record *record, char out[SHOW_TEXT_BYTES])
{
    int64_t us = 0;
    if (record->started_at == ROW_NULL || !base_sub(record->finished_at, record->started_at, &us))
        (void)snprintf(out, SHOW_TEXT_BYTES, "-");
    else
        (void)show_duration(us, out);
}

static int add_row(struct table *table, const struct record *record)
{
    char received[SHOW_TEXT_BYTES], duration[SHOW_TEXT_BYTES],
        exit_code[SHOW_TEXT_BYTES] = "-", seq[SHOW_TEXT_BYTES], code[HASH_COLUMNS + 1];
    (void)show_time(record->received_at, received);
    took(record, duration);
    if (record->exit_code != ROW_NULL)
        (void)snprintf(exit_code, sizeof(exit_code), "%" PRId64, record->exit_code);
    (void)snprintf(seq, sizeof(seq), "%" PRId64, record->seq);
    (void)snprintf(code, sizeof(code), "%.*s", HASH_COLUMNS, record->code_sha256);
    const struct table_cell cells[COLUMN_COUNT] = {
        [COLUMN_RECEIVED] = {received, TERMINAL_DIM},
        [COLUMN_RUN] = {record->run_id, TERMINAL_PLAIN},
        [COLUMN_STATUS] = {status_word(record->status), show_status_style(record->status)},
        [COLUMN_REASON] = {reason_word(record->reason), TERMINAL_PLAIN},
        [COLUMN_EXIT] = {exit_code, TERMINAL_PLAIN},
        [COLUMN_TOOK] = {duration, TERMINAL_PLAIN},
        [COLUMN_LANGUAGE] = {record->language, TERMINAL_PLAIN},
        [COLUMN_CODE] = {code, TERMINAL_DIM},
        [COLUMN_COMPANY] = {record->company, TERMINAL_PLAIN},
        [COLUMN_ACTOR] = {record->actor, TERMINAL_PLAIN},
        [COLUMN_PURPOSE] = {record->purpose, TERMINAL_PLAIN},
        [COLUMN_SEQ] = {seq, TERMINAL_DIM},
    };
    return table_add(table, cells);
}

/* table NULL: as JSON. 0 or an exit code after the complaint. */
static int print_row(struct table *table, const struct record *record)
{
    if (table) {
        int rc = add_row(table, record);
        return rc == 0 ? EXIT_CODE_OK : message_failure(rc, "cannot print a row");
    }
    AR_AUTO_JSON json_t *value = record_to_json(record);
    return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print a row");
}

/* Prints until the end or the limit. *left: rows that may be printed, < 0: all; 0 at the end when
 * there may be more. */
static int print_rows(const struct list_options *options, struct reader *reader,
                      struct table *table, int64_t *left)
{
    while (*left != 0) {
        AR_CLEANUP(record_cleanup) struct record *record = NULL;
        int rc = reader_next(reader, &record);
        if (rc == 1)
            return EXIT_CODE_OK;
        if (rc != 0)
            return store_failed(reader, rc);
        if (!run_filter_matches(&options->runs, record))
            continue;
        int code = print_row(table, record);
        if (code != EXIT_CODE_OK)
            return code;
        if (*left > 0)
            (*left)--;
    }
    return EXIT_CODE_OK;
}

static int list(const struct list_options *options, struct table *table)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    struct reader_filter filter = options->runs.filter;
    int64_t left = options->runs.limit == 0 ? -1 : options->runs.limit;
    int code = store_open(&options->store, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    if (left > 0 && !options->runs.code_hash)
        filter.limit = left;
    int rc = reader_query(reader, &filter, READER_NEWEST_FIRST);
    if (rc != 0)
        return store_failed(reader, rc);
    code = print_rows(options, reader, table, &left);
    if (table)
        table_flush(table);
    if (left == 0 && table && isatty(STDERR_FILENO) == 1)
        (void)message_error(0, "the newest %" PRId64 " rows; --limit 0 shows all",
                            options->runs.limit);
    return code;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(table_cleanup) struct table *table = NULL;
    struct list_options *options = target;
    struct terminal terminal;
    (void)rest;
    int code = run_filter_check(title, &options->runs);
    if (code != EXIT_CODE_OK)
        return code;
    if (options->runs.limit == OPTIONS_UNSET)
        options->runs.limit = options->store.json ? 0 : LIMIT_FOR_TABLE;
    terminal_open(&terminal, stdout);
    int rc = options->store.json ? 0 : table_new(columns, COLUMN_COUNT, &terminal, &table);
    return rc == 0 ? list(options, table) : message_failure(rc, "cannot print a table");
}

static const struct list_options defaults = {.runs = RUN_FILTER_NONE};

const struct verb verb_ledger_list = {
    .group = "ledger",
    .name = "list",
    .summary = "list the runs in the ledger",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};

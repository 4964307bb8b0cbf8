/*
 * verb_ledger_show.c - auditrun ledger show: everything that the ledger has about one run.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"
#include "cli/store.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun ledger show [OPTIONS] RUN_ID\n"
    "\n"
    "Shows all columns of one row, and whether its hash is that of its columns.\n"
    "\n"
    "  --json               the record as one line of JSON\n" STORE_OPTION_HELP "\n"
    "Exit code: 0; 1 the hash is not that of the columns; 2 the store failed; 64 usage; 66 there "
    "is\n"
    "no such run; 78 bad configuration.\n"
    "\n"
    "Example\n"
    "  auditrun ledger show 01937a5e-8c4f-7b21-9d3e-5f60718293a4\n";

static const struct option_row rows[] = {STORE_OPTION_ROWS};

static int print(const struct store_options *options, const struct record *record)
{
    struct terminal terminal;
    int rc = record_check(record);
    if (rc < 0)
        return message_failure(rc, "cannot check the record");
    int code = rc == 0 ? EXIT_CODE_OK : EXIT_CODE_NO;
    if (options->json) {
        AR_AUTO_JSON json_t *value = record_to_json(record);
        rc = value ? call_print_json(value) : message_failure(-ENOMEM, "cannot show the record");
        return rc == EXIT_CODE_OK ? code : rc;
    }
    terminal_open(&terminal, stdout);
    rc = show_record(&terminal, record);
    return rc == 0 ? code : message_failure(rc, "cannot show the record");
}

static int act(const char *title, void *options, const struct options_rest *rest)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    AR_CLEANUP(record_cleanup) struct record *record = NULL;
    struct reader_filter filter = READER_FILTER_ALL;
    if (rest->operands.count != 1 || rest->behind.count > 0)
        return message_usage(title, "which run? Name one RUN_ID");
    filter.run_id = rest->operands.items[0];
    if (!uuid7_is_valid(filter.run_id))
        return message_usage(title, "a RUN_ID is a UUID of version 7 in lower case");
    int code = store_open(options, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = reader_query(reader, &filter, READER_NEWEST_FIRST);
    if (rc == 0)
        rc = reader_next(reader, &record);
    else
        return store_failed(reader, rc);
    if (rc == 1)
        return message_error(EXIT_CODE_NO_INPUT, "the ledger has no run %s", filter.run_id);
    return rc == 0 ? print(options, record) : store_failed(reader, rc);
}

static const struct store_options defaults;

const struct verb verb_ledger_show = {
    .group = "ledger",
    .name = "show",
    .summary = "show everything about one run",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};

/*
 * verb_ledger_checkpoints.c - auditrun ledger checkpoints: the signed heads that the ledger has, in the
 * form in which they are kept elsewhere.
 *
 * They are lines of JSON with and without --json: auditrun verify --checkpoints reads them.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun ledger checkpoints [OPTIONS]\n"
    "\n"
    "Prints the checkpoints (signed heads of chains) of the ledger, each as a line of JSON with "
    "its\n"
    "public key, in the order of the chains. Kept on another machine they show, with\n"
    "auditrun verify --checkpoints, a history that was rewritten afterwards.\n"
    "\n"
    "  --writer ID          only those of this writer\n"
    "  --since TIME         only those made at this time or later,\n"
    "  --until TIME         and before this one: 2026-01-31, 2026-01-31T12:00:00Z, or 2h (ago)\n"
    "  --json               the same: they are always lines of JSON\n" STORE_OPTION_HELP "\n"
    "Exit code: 0; 2 the store failed; 64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger checkpoints --since 1d | ssh archive 'cat >>checkpoints'\n"
    "  auditrun verify --checkpoints checkpoints --key checkpoint.key.pub\n";

struct given {
    struct store_options store; /* first */
    struct reader_filter filter;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    {"writer", OPTION_TEXT, offsetof(struct given, filter.writer)},
    {"since", OPTION_TIME, offsetof(struct given, filter.since)},
    {"until", OPTION_TIME, offsetof(struct given, filter.until)},
};

static int print_all(struct reader *reader)
{
    struct checkpoint checkpoint;
    int rc = 0;
    while ((rc = reader_next_checkpoint(reader, &checkpoint)) == 0) {
        AR_AUTO_JSON json_t *value = checkpoint_to_json(&checkpoint);
        int code =
            value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print a checkpoint");
        if (code != EXIT_CODE_OK)
            return code;
    }
    return rc == 1 ? EXIT_CODE_OK : store_failed(reader, rc);
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    const struct given *given = target;
    (void)rest;
    if (given->filter.writer && !uuid7_is_uuid(given->filter.writer))
        return message_usage(title, "--writer takes a UUID in lower case");
    int code = store_open(&given->store, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = reader_query_checkpoints(reader, &given->filter);
    return rc == 0 ? print_all(reader) : store_failed(reader, rc);
}

static const struct given defaults = {
    .filter = {.since = ROW_NULL, .until = ROW_NULL, .limit = ROW_NULL},
};

const struct verb verb_ledger_checkpoints = {
    .group = "ledger",
    .name = "checkpoints",
    .summary = "print the signed heads of the chains",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};

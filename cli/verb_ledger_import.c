/*
 * verb_ledger_import.c - auditrun ledger import: an exported ledger into another one, for the day that
 * a team grows out of SQLite.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/import.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/verb.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
    "usage: auditrun ledger import [OPTIONS] FILE | -\n"
    "\n"
    "Takes the JSON lines of auditrun ledger export into a ledger that is ready (ledger init). "
    "Rows,\n"
    "keys and checkpoints go in as they are, so every hash stays valid. Each row is checked "
    "before\n"
    "it is sent: its columns have to give its hash, and it has to follow on the row before. Rows\n"
    "that are there already are passed over, so an import that was cut off is just repeated; a "
    "row\n"
    "that is there with another hash ends it. On PostgreSQL the partitions are made first.\n"
    "\n"
    "The daemons whose chains these are must not append to either ledger meanwhile.\n"
    "\n"
    "  --json               what was done as one line of JSON\n" STORE_OPTION_HELP "\n"
    "Exit code: 0; 1 a row is not as it was written, or not what the ledger has; 2 the store "
    "failed;\n"
    "64 usage; 66 the file cannot be read or is not of an export; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger export --ledger sqlite:/var/lib/auditrun/ledger.db --output ledger.jsonl\n"
    "  auditrun ledger init --ledger postgres:dbname=audit\n"
    "  auditrun ledger import --ledger postgres:dbname=audit ledger.jsonl\n"
    "  auditrun verify --ledger postgres:dbname=audit\n";

static const struct option_row rows[] = {STORE_OPTION_ROWS};

static int tell(const struct import *import, bool json)
{
    if (json) {
        AR_AUTO_JSON json_t *value = json_pack(
            "{s:I, s:I, s:I, s:I}", "rows", (json_int_t)import->rows_taken, "rows_there",
            (json_int_t)import->rows_there, "checkpoints", (json_int_t)import->checkpoints_taken,
            "keys", (json_int_t)import->keys_taken);
        return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print");
    }
    (void)printf("%" PRId64 " rows, %" PRId64 " checkpoints, %" PRId64 " keys taken in; %" PRId64
                 " rows were there already\n",
                 import->rows_taken, import->checkpoints_taken, import->keys_taken,
                 import->rows_there);
    return EXIT_CODE_OK;
}

static int open_target(const char *url, struct transfer **out)
{
    char message[TRANSFER_MESSAGE_BYTES];
    int rc = transfer_open(url, out, message);
    if (rc < 0)
        return message_failure(rc, "cannot open the ledger");
    if (rc == 2)
        return message_error(EXIT_CODE_USAGE, "%s", store_url_forms);
    return rc == 0 ? EXIT_CODE_OK : store_says("cannot use the ledger", message);
}

static int run(const struct store_options *options, const char *path)
{
    AR_CLEANUP(transfer_cleanup) struct transfer *transfer = NULL;
    AR_CLEANUP(lines_close) struct lines lines = {0};
    AR_AUTO_FREE char *url = NULL;
    int rc = lines_open(path, &lines);
    if (rc < 0) {
        AR_AUTO_FREE char *escaped = terminal_escape(path, strlen(path));
        return message_error(EXIT_CODE_NO_INPUT, "cannot open %s: %s", escaped ? escaped : "",
                             strerror(-rc));
    }
    int code = store_url(options, &url);
    if (code == EXIT_CODE_OK)
        code = open_target(url, &transfer);
    if (code != EXIT_CODE_OK)
        return code;
    struct import *import = calloc(1, sizeof(*import));
    if (!import)
        return message_failure(-ENOMEM, "cannot import");
    import->url = url;
    import->transfer = transfer;
    import->lines = &lines;
    code = import_all(import);
    if (code == EXIT_CODE_OK)
        code = tell(import, options->json);
    import_end(import);
    free(import);
    return code;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    if (rest->operands.count != 1 || rest->behind.count > 0)
        return message_usage(title, "what? Name one FILE of auditrun ledger export, or - for "
                                    "standard input");
    return run(target, rest->operands.items[0]);
}

static const struct store_options defaults;

const struct verb verb_ledger_import = {
    .group = "ledger",
    .name = "import",
    .summary = "take an exported ledger into another",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};

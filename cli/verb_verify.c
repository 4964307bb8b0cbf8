/*
 * verb_verify.c - auditrun verify: is every row of every chain what it was when it was written?
 *
 * The verdict is on stdout, the progress on stderr and only on a terminal.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/store.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "sinks/verify.h"

#include <inttypes.h>

#define BAR_COLUMNS 30

static const char help[] =
    "usage: auditrun verify [OPTIONS]\n"
    "\n"
    "Walks every chain of the ledger, computes every hash again, and names the first row that was\n"
    "altered, dropped, reordered or inserted.\n"
    "\n"
    "  --json               the verdict as one line of JSON\n"
    "  --quiet              no progress, and no verdict when the ledger is "
    "whole\n" STORE_OPTION_HELP "\n"
    "Exit code: 0 the ledger is whole; 1 a bad row was found and is named; 2 the store failed;\n"
    "64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun verify\n"
    "  auditrun verify --json --ledger sqlite:/var/lib/auditrun/ledger.db\n";

struct verify_options {
    struct store_options store; /* first */
    bool quiet;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    {"quiet", OPTION_FLAG, offsetof(struct verify_options, quiet)},
};

/* A line that draws over itself; of < 0: the end is not known. */
static void draw(void *context, int64_t done, int64_t of)
{
    static const char full[] = "##############################",
                      none[] = "..............................";
    const struct terminal *terminal = context;
    _Static_assert(sizeof(full) == BAR_COLUMNS + 1 && sizeof(none) == sizeof(full), "one bar");
    if (of <= 0) {
        (void)fprintf(terminal->stream, "\r%" PRId64 " rows", done);
    } else {
        double part = done >= of ? 1 : (double)done / (double)of;
        int filled = (int)(part * BAR_COLUMNS);
        (void)fprintf(terminal->stream, "\r[%.*s%.*s] %3d%%  %" PRId64 " rows", filled, full,
                      BAR_COLUMNS - filled, none, (int)(part * 100), done);
    }
    (void)fflush(terminal->stream);
}

static void wipe(const struct terminal *terminal)
{
    (void)fprintf(terminal->stream, "\r\033[K");
    (void)fflush(terminal->stream);
}

static int print_json(const struct verify_result *result)
{
    bool bad = result->finding != VERIFY_OK;
    AR_AUTO_JSON json_t *value =
        json_pack("{s:s, s:I, s:I}", "finding", bad ? verify_word(result->finding) : "ok", "rows",
                  (json_int_t)result->rows, "writers", (json_int_t)result->writers);
    int failed = value == NULL;
    if (bad && value) {
        failed |= json_object_set_new(value, "writer", json_string(result->writer));
        failed |= json_object_set_new(value, "seq", json_integer(result->seq));
        failed |= json_object_set_new(
            value, "run_id", result->run_id[0] ? json_string(result->run_id) : json_null());
    }
    return failed ? message_failure(-ENOMEM, "cannot print the verdict") : call_print_json(value);
}

static const char *explain(enum verify_finding finding)
{
    static const char *const words[VERIFY_FINDING_COUNT] = {
        [VERIFY_OK] = "is as it was written",
        [VERIFY_ALTERED] = "was altered: its columns do not give its hash",
        [VERIFY_MISSING] = "is missing: it was dropped",
        [VERIFY_REPEATED] = "is there twice: one was inserted",
        [VERIFY_UNLINKED] = "does not follow on the row before: one of the two was replaced",
        [VERIFY_HEAD] = "is not the head that the store keeps: rows were dropped at the end",
        [VERIFY_UNREADABLE] = "cannot be read: a column does not have its form",
    };
    return (unsigned)finding < VERIFY_FINDING_COUNT ? words[finding] : "is wrong";
}

static void print(const struct verify_result *result, bool quiet)
{
    struct terminal terminal;
    terminal_open(&terminal, stdout);
    if (result->finding == VERIFY_OK && quiet)
        return;
    if (result->finding == VERIFY_OK) {
        (void)printf(
            "%swhole%s: %" PRId64 " row%s in %" PRId64 " chain%s, each as it was written\n",
            terminal_begin(&terminal, TERMINAL_GOOD), terminal_end(&terminal, TERMINAL_GOOD),
            result->rows, result->rows == 1 ? "" : "s", result->writers,
            result->writers == 1 ? "" : "s");
        return;
    }
    (void)printf("%sBAD%s (%s): row %" PRId64 " of writer %s%s%s %s\n",
                 terminal_begin(&terminal, TERMINAL_BAD), terminal_end(&terminal, TERMINAL_BAD),
                 verify_word(result->finding), result->seq, result->writer,
                 result->run_id[0] ? ", run " : "", result->run_id, explain(result->finding));
    (void)printf("%" PRId64 " rows before it were checked; the rows after it were not\n",
                 result->rows);
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    const struct verify_options *options = target;
    struct verify_result result = {.finding = VERIFY_OK};
    struct terminal progress;
    (void)title;
    (void)rest;
    int code = store_open(&options->store, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    terminal_open(&progress, stderr);
    bool drawn = progress.is_terminal && !options->quiet;
    int rc = verify_ledger(reader, drawn ? draw : NULL, &progress, &result);
    if (drawn)
        wipe(&progress);
    if (rc != 0)
        return store_failed(reader, rc);
    if (options->store.json)
        code = print_json(&result);
    else
        print(&result, options->quiet);
    return code == EXIT_CODE_OK && result.finding != VERIFY_OK ? EXIT_CODE_NO : code;
}

static const struct verify_options defaults;

const struct verb verb_verify = {
    .name = "verify",
    .summary = "check that the ledger is what was written",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .act = act,
};

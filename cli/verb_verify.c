/*
 * verb_verify.c - auditrun verify: is every row of every chain what it was when it was written?
 *
 * The verdict is on stdout, the progress on stderr and only on a terminal.
 */
#include "cli/call.h"
#include "cli/checkpoint_file.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/store.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "sinks/verify.h"

#include <inttypes.h>
#include <string.h>

static const char help[] =
    "usage: auditrun verify [OPTIONS]\n"
    "\n"
    "Walks every chain of the ledger, computes every hash again, and names the first row that was\n"
    "altered, dropped, reordered or inserted. Checks the signature of every checkpoint in the "
    "store.\n"
    "\n"
    "  --checkpoints FILE   also checkpoints that were kept elsewhere: lines of the daemon's log, "
    "or\n"
    "                       of JSON; -: standard input. Catches a history that was rewritten as a\n"
    "                       whole, and rows that were cut off at the end. May be repeated\n"
    "  --key FILE           only checkpoints by this public key (PEM) count, and one by another is "
    "a\n"
    "                       finding. May be repeated: keys are changed now and then\n"
    "  --writer ID          only the chain of this writer\n"
    "  --json               the verdict as one line of JSON\n"
    "  --quiet              no progress, and no verdict when the ledger is "
    "whole\n" STORE_OPTION_HELP "\n"
    "Exit code: 0 the ledger is whole; 1 a bad row was found and is named; 2 the store failed;\n"
    "64 usage; 78 bad configuration.\n"
    "\n"
    "Examples\n"
    "  auditrun verify\n"
    "  journalctl -u auditrund -o cat | auditrun verify --checkpoints - --key "
    "/etc/auditrun/ledger.pub\n"
    "  auditrun verify --json --ledger sqlite:/var/lib/auditrun/ledger.db\n";

struct given {
    struct store_options store; /* first */
    struct text_list checkpoints, keys;
    const char *writer;
    bool quiet;
};

static const struct option_row rows[] = {
    STORE_OPTION_ROWS,
    {"checkpoints", OPTION_LIST, offsetof(struct given, checkpoints)},
    {"key", OPTION_LIST, offsetof(struct given, keys)},
    {"writer", OPTION_TEXT, offsetof(struct given, writer)},
    {"quiet", OPTION_FLAG, offsetof(struct given, quiet)},
};

static void show(void *context, int64_t done, int64_t of)
{
    progress_show(context, done, of);
}

static int print_json(const struct verify_result *result)
{
    bool bad = result->finding != VERIFY_OK;
    AR_AUTO_JSON json_t *value =
        json_pack("{s:s, s:I, s:I, s:I, s:I}", "finding", verify_word(result->finding), "rows",
                  (json_int_t)result->rows, "writers", (json_int_t)result->writers, "checkpoints",
                  (json_int_t)result->checkpoints, "retired", (json_int_t)result->retired);
    int failed = value == NULL;
    if (bad && value) {
        failed |= json_object_set_new(value, "writer", json_string(result->writer));
        failed |= json_object_set_new(value, "seq", json_integer(result->seq));
        failed |= json_object_set_new(
            value, "row_id", result->row_id[0] ? json_string(result->row_id) : json_null());
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
        [VERIFY_CHECKPOINT] = "is not what a checkpoint says: history was rewritten or cut off",
        [VERIFY_UNSIGNED] = "has no signature that counts: it is wrong, or by another key",
    };
    return (unsigned)finding < VERIFY_FINDING_COUNT ? words[finding] : "is wrong";
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_whole(const struct terminal *terminal, const struct verify_result *result)
{
    (void)printf("%swhole%s: %" PRId64 " row%s in %" PRId64 " chain%s, each as it was written\n",
                 terminal_begin(terminal, TERMINAL_GOOD), terminal_end(terminal, TERMINAL_GOOD),
                 result->rows, plural(result->rows), result->writers, plural(result->writers));
    if (result->checkpoints > 0)
        (void)printf("%" PRId64 " checkpoint%s over them, each with its signature\n",
                     result->checkpoints, plural(result->checkpoints));
    if (result->retired > 0)
        (void)printf("%" PRId64 " row%s went with retired partitions\n", result->retired,
                     plural(result->retired));
}

static void print(const struct verify_result *result, bool quiet)
{
    struct terminal terminal;
    terminal_open(&terminal, stdout);
    if (result->finding == VERIFY_OK && quiet)
        return;
    if (result->finding == VERIFY_OK) {
        print_whole(&terminal, result);
        return;
    }
    (void)printf("%sBAD%s (%s): row %" PRId64 " of writer %s%s%s %s\n",
                 terminal_begin(&terminal, TERMINAL_BAD), terminal_end(&terminal, TERMINAL_BAD),
                 verify_word(result->finding), result->seq, result->writer,
                 result->row_id[0] ? ", id " : "", result->row_id, explain(result->finding));
    (void)printf("%" PRId64 " rows before it were checked; the rows after it were not\n",
                 result->rows);
}

/* What the files say. Everything in it is the caller's to free. */
static int read_files(const struct given *given, struct checkpoint_file *checkpoints,
                      struct text_list *key_ids)
{
    int code = EXIT_CODE_OK;
    for (size_t i = 0; i < given->keys.count && code == EXIT_CODE_OK; i++)
        code = checkpoint_file_read_key(given->keys.items[i], key_ids);
    for (size_t i = 0; i < given->checkpoints.count && code == EXIT_CODE_OK; i++)
        code = checkpoint_file_read(given->checkpoints.items[i], checkpoints);
    return code;
}

/* 0 with the verdict in *result, or an exit code after the complaint. */
static int verify(const struct given *given, struct verify_options *options,
                  struct verify_result *result)
{
    AR_CLEANUP(store_cleanup) struct reader *reader = NULL;
    struct progress progress;
    int code = store_open(&given->store, &reader);
    if (code != EXIT_CODE_OK)
        return code;
    progress_begin(&progress, 0);
    options->progress = given->quiet ? NULL : show;
    options->context = &progress;
    int rc = verify_ledger(reader, options, result);
    options->progress = NULL;
    options->context = NULL;
    progress_end(&progress);
    if (rc != 0)
        return store_failed(reader, rc);
    if (options->writer && result->writers == 0)
        return message_error(EXIT_CODE_NO_INPUT, "the ledger has no writer %s", options->writer);
    return EXIT_CODE_OK;
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    AR_CLEANUP(checkpoint_file_free) struct checkpoint_file checkpoints = {0};
    AR_CLEANUP(text_list_free) struct text_list key_ids = {0};
    const struct given *given = target;
    struct verify_result result = {.finding = VERIFY_OK};
    (void)rest;
    if (given->writer &&
        (strlen(given->writer) != UUID7_TEXT_BYTES - 1 || !uuid7_is_uuid(given->writer)))
        return message_usage(title, "--writer takes a UUID in lower case");
    int code = read_files(given, &checkpoints, &key_ids);
    struct verify_options options = {.writer = given->writer,
                                     .checkpoints = checkpoints.items,
                                     .checkpoint_count = checkpoints.count,
                                     .key_ids = (const char *const *)key_ids.items,
                                     .key_id_count = key_ids.count};
    if (code == EXIT_CODE_OK)
        code = verify(given, &options, &result);
    if (code != EXIT_CODE_OK)
        return code;
    if (given->store.json)
        code = print_json(&result);
    else
        print(&result, given->quiet);
    return code == EXIT_CODE_OK && result.finding != VERIFY_OK ? EXIT_CODE_NO : code;
}

static const struct given defaults;

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

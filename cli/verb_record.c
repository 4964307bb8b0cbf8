/*
 * verb_record.c - auditrun record: the record of one run, as the daemon gives it to this client.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"
#include "cli/verb.h"

static const char help[] =
    "usage: auditrun record [OPTIONS] RUN_ID\n"
    "       auditrun record [OPTIONS] --company C --key K\n"
    "\n"
    "Shows the record of a run, named by its id or by its company and idempotency key. You see "
    "the\n"
    "records of the companies that you may speak for; auditrun ledger show reads the ledger "
    "itself.\n"
    "\n"
    "  --company C          company of the run (only with --key)\n"
    "  --key K              its idempotency key\n" CALL_OPTION_HELP "\n"
    "Exit code: 0; 64, 66 (not found), 69, 76, 77 as for auditrun run.\n"
    "\n"
    "Examples\n"
    "  auditrun record 01937a5e-8c4f-7b21-9d3e-5f60718293a4\n"
    "  auditrun record --json --company acme --key invoice-4711 | jq .status\n";

struct record_options {
    struct call_options call; /* first */
    const char *company, *key;
};

static const struct option_row rows[] = {
    CALL_OPTION_ROWS,
    {"company", OPTION_TEXT, offsetof(struct record_options, company)},
    {"key", OPTION_TEXT, offsetof(struct record_options, key)},
};

/* {"run_id"} or {"company", "idempotency_key"}; NULL when a text is not UTF-8 or out of memory. */
static json_t *build_params(const struct record_options *options, const char *run_id)
{
    AR_AUTO_JSON json_t *params = json_object();
    int failed = 0;
    if (run_id) {
        failed = json_object_set_new(params, "run_id", json_string(run_id));
    } else {
        failed = json_object_set_new(params, "company", json_string(options->company)) ||
                 json_object_set_new(params, "idempotency_key", json_string(options->key));
    }
    return failed ? NULL : AR_TAKE(params);
}

static int print(const json_t *value)
{
    AR_CLEANUP(record_cleanup) struct record *record = NULL;
    struct terminal terminal;
    struct fault fault = {0};
    terminal_open(&terminal, stdout);
    int rc = record_from_json(value, false, &record, &fault);
    if (rc == 0)
        rc = show_record(&terminal, record);
    else if (rc > 0)
        return message_error(EXIT_CODE_PROTOCOL, "the daemon's answer is no record that this "
                                                 "version can read (--json shows it)");
    return rc < 0 ? message_failure(rc, "cannot show the record") : EXIT_CODE_OK;
}

static int ask(const struct record_options *options, const char *run_id)
{
    AR_AUTO_JSON json_t *result = NULL;
    AR_AUTO_JSON json_t *params = build_params(options, run_id);
    if (!params)
        return message_error(EXIT_CODE_USAGE, "the request cannot be built: a value is not UTF-8");
    int code = call_daemon(&options->call, RPC_METHOD_RECORD, params, &result);
    if (code != EXIT_CODE_OK)
        return code;
    const json_t *record = json_object_get(result, "record");
    const json_t *value = json_is_object(record) ? record : result;
    return options->call.json ? call_print_json(value) : print(value);
}

static bool is_named(const struct record_options *options, const struct options_rest *rest)
{
    bool by_key = options->company && options->key;
    bool half = options->company || options->key;
    size_t operands = rest->operands.count;
    return rest->behind.count == 0 && ((operands == 1 && !half) || (operands == 0 && by_key));
}

static int act(const char *title, void *options, const struct options_rest *rest)
{
    if (!is_named(options, rest))
        return message_usage(title, "which record? Name one RUN_ID, or --company and --key");
    return ask(options, rest->operands.count ? rest->operands.items[0] : NULL);
}

static const struct record_options defaults;

const struct verb verb_record = {
    .name = "record",
    .summary = "show the record of a run",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};

/*
 * store.c - what the verbs that read the ledger itself have in common.
 *
 * What a store says is foreign text and goes through the terminal's escaping.
 */
#include "cli/store.h"

#include "cli/call.h"
#include "cli/config_file.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/terminal.h"
#include "sinks/schema.h"
#include "sinks/url.h"

#include <string.h>

const char store_url_forms[] = "a ledger's URL is sqlite:/path/to/ledger.db, or postgres: and a "
                               "libpq connection string";

int store_url(const struct store_options *options, char **url)
{
    char message[CONFIG_FILE_MESSAGE_BYTES];
    int rc = config_file_ledger(options->ledger, options->config, url, message);
    if (rc < 0)
        return message_failure(rc, "cannot find the ledger");
    return rc == 0 ? EXIT_CODE_OK : message_error(EXIT_CODE_CONFIG, "%s", message);
}

int store_says(const char *what, const char *message)
{
    AR_AUTO_FREE char *escaped = terminal_escape(message, strlen(message));
    return message_error(EXIT_CODE_STORE, "%s: %s", what, escaped ? escaped : "");
}

int store_open(const struct store_options *options, struct reader **out)
{
    char message[READER_MESSAGE_BYTES] = "";
    AR_AUTO_FREE char *url = NULL;
    int rc = store_url(options, &url);
    if (rc != EXIT_CODE_OK)
        return rc;
    rc = reader_open(url, out, message);
    if (rc < 0)
        return message_failure(rc, "cannot open the ledger");
    if (rc == 1)
        return store_says("cannot open the ledger", message);
    return rc == 0 ? EXIT_CODE_OK : message_error(EXIT_CODE_USAGE, "%s", store_url_forms);
}

int store_failed(const struct reader *reader, int rc)
{
    if (rc < 0)
        return message_failure(rc, "cannot read the ledger");
    if (rc == READER_UNREADABLE)
        return message_error(EXIT_CODE_STORE, "the ledger has a row that cannot be read: auditrun "
                                              "verify names it");
    return store_says("cannot read the ledger", reader_message(reader));
}

/* ---- making it ready ---------------------------------------------------------------------------- */

static int print_ready(const struct store_options *options, int applied, const char *missing)
{
    if (options->json) {
        AR_AUTO_JSON json_t *value =
            json_pack("{s:i, s:s}", "applied", applied, "missing", missing);
        return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print");
    }
    if (applied == 0)
        (void)puts("the ledger was ready already");
    else
        (void)printf("the ledger is ready (%d migration%s applied)\n", applied,
                     applied == 1 ? "" : "s");
    if (missing[0]) {
        AR_AUTO_FREE char *escaped = terminal_escape(missing, strlen(missing));
        return message_error(EXIT_CODE_OK, "%s", escaped ? escaped : "");
    }
    return EXIT_CODE_OK;
}

/* Is there one that can be brought to this version? 0, or an exit code after the complaint. */
static int check_there(const char *url)
{
    char message[SCHEMA_MESSAGE_BYTES] = "";
    AR_CLEANUP(schema_status_free) struct schema_status status = {0};
    int rc = schema_status(url, &status, message);
    if (rc < 0)
        return message_failure(rc, "cannot look at the ledger");
    if (rc == 2)
        return message_error(EXIT_CODE_USAGE, "%s", store_url_forms);
    if (rc != 0)
        return store_says("cannot look at the ledger", message);
    if (status.version == 0 && !status.differs)
        return message_error(EXIT_CODE_STORE,
                             "there is no ledger yet: auditrun ledger init makes one");
    return EXIT_CODE_OK;
}

int store_make_ready(const struct store_options *options, const char *partition_width,
                     bool may_make)
{
    char message[SCHEMA_MESSAGE_BYTES] = "";
    AR_AUTO_FREE char *url = NULL;
    const struct schema_options choices = {.partition_width = partition_width};
    const char *rest;
    int applied = 0;
    int code = store_url(options, &url);
    if (code == EXIT_CODE_OK && partition_width && url_parse(url, &rest) == URL_SQLITE)
        code = message_error(EXIT_CODE_USAGE, "--partitions is for PostgreSQL: SQLite has none");
    if (code == EXIT_CODE_OK && !may_make)
        code = check_there(url);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = schema_init_with(url, &choices, &applied, message);
    if (rc < 0)
        return message_failure(rc, "cannot make the ledger ready");
    if (rc == 2)
        return message_error(EXIT_CODE_USAGE, "%s", store_url_forms);
    return rc == 0 ? print_ready(options, applied, message)
                   : store_says("cannot make the ledger ready", message);
}

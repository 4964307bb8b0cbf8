/*
 * store.c - what the verbs that read the ledger itself have in common.
 *
 * What a store says is foreign text and goes through the terminal's escaping.
 */
#include "cli/store.h"

#include "cli/config_file.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/terminal.h"

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

static int store_says(const char *what, const char *message)
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
    return store_says("cannot read the ledger", reader_message(reader));
}

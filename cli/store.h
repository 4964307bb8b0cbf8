/*
 * store.h - what the verbs that read the ledger itself have in common: the options, the opened
 * reader, and the words for what can go wrong.
 *
 * The URL of a ledger may hold a password: it is never printed.
 */
#ifndef AUDITRUN_CLI_STORE_H
#define AUDITRUN_CLI_STORE_H

#include "cli/options.h"
#include "sinks/reader.h"

/* Options of every verb that reads the ledger. Put it first in the verb's struct. */
struct store_options {
    const char *ledger;
    const char *config;
    bool json;
};
#define STORE_OPTION_ROWS                                                \
    {"ledger", OPTION_TEXT, offsetof(struct store_options, ledger)},     \
        {"config", OPTION_TEXT, offsetof(struct store_options, config)}, \
    {                                                                    \
        "json", OPTION_FLAG, offsetof(struct store_options, json)        \
    }
#define STORE_OPTION_HELP                                                                     \
    "  --ledger URL         sqlite:/path/to/ledger.db, or postgres: and a libpq connection\n" \
    "                       string; else [ledger] url of the configuration\n"                 \
    "  --config FILE        configuration file; else AUDITRUN_CONFIG, else the default\n"     \
    "  -h, --help           this page\n"

/* What to say to a URL of no known form. */
extern const char store_url_forms[];

/* Brings the ledger to this version and tells what was done. partition_width: "day", "week", "month" or
 * NULL; may_make: an absent ledger is made, else refused. Returns an exit code. */
int store_make_ready(const struct store_options *options, const char *partition_width,
                     bool may_make) AR_MUST_CHECK;

/* The URL to use. 0 with *url malloc'd, or an exit code after the complaint. */
int store_url(const struct store_options *options, char **url) AR_MUST_CHECK;

/* The ledger, opened for reading. 0 with *out owned (reader_close), or an exit code after the
 * complaint. */
int store_open(const struct store_options *options, struct reader **out) AR_MUST_CHECK;

/* A failure of the store, in its own words (escaped here). Returns the exit code. */
int store_says(const char *what, const char *message);

/* The complaint for a result of reader_query(), reader_next() and the like that is not fine.
 * Returns the exit code. */
int store_failed(const struct reader *reader, int rc);

static inline void store_cleanup(struct reader **reader)
{
    if (*reader)
        reader_close(*reader);
}

#endif

/*
 * order.h - what `auditrun run` was told to do: the command line as a struct, and as the params of
 * a `run` request.
 */
#ifndef AUDITRUN_CLI_ORDER_H
#define AUDITRUN_CLI_ORDER_H

#include "cli/call.h"
#include "protocol/vocabulary.h"

struct order {
    struct call_options call; /* first: its rows have offsets from here */
    const char *file;         /* the code: a path, or "-" */
    const char *language, *company, *actor, *purpose, *executor;
    const char *network; /* NULL: none, or allowlist when there are hosts */
    const char *key;
    const char *stdin_path;
    struct text_list hosts, data_api, secrets, secrets_env, read, write;
    struct text_list args, env, files, output_files;
    int64_t limits[LIMIT_COUNT]; /* OPTIONS_UNSET where not given */
    int64_t wait_ms;             /* OPTIONS_UNSET: as long as it takes */
    bool quiet, verbose, raw, stream;
};

/* The options of the verb. */
#define ORDER_ROW_COUNT 33
extern const struct option_row order_rows[ORDER_ROW_COUNT];
extern const struct order order_defaults;

/* Adds what is not an option: the file, arguments, and what the environment says (AUDITRUN_COMPANY,
 * _ACTOR, _PURPOSE); checks what has to be known to build a request. 0, or an exit code after the
 * complaint. order borrows from rest. */
int order_complete(const char *title, struct order *order,
                   const struct options_rest *rest) AR_MUST_CHECK;

/* Reads the files and builds the params. 0 with *params owned, or an exit code after the
 * complaint. */
int order_params(const struct order *order, json_t **params) AR_MUST_CHECK;

/* Which option a JSON Pointer into params came from ("--host"), for a person; NULL: not known. */
const char *order_option(const char *path);

/* PATH[=LOCAL] of --output-file: the length of PATH, and LOCAL (PATH's own text without "="). */
size_t order_output_path(const char *item, const char **local);

#endif

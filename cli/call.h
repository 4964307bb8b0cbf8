/*
 * call.h - what the verbs that ask the daemon have in common: the options, the connection, one
 * call, and the words for what can go wrong.
 */
#ifndef AUDITRUN_CLI_CALL_H
#define AUDITRUN_CLI_CALL_H

#include "cli/client.h"
#include "cli/options.h"

#define CALL_CONNECT_MS 5000
#define CALL_ANSWER_MS  15000

/* Options of every verb that talks to the daemon. Put it first in the verb's struct. */
struct call_options {
    const char *socket;
    const char *config;
    bool json;
};
#define CALL_OPTION_ROWS                                                \
    {"socket", OPTION_TEXT, offsetof(struct call_options, socket)},     \
        {"config", OPTION_TEXT, offsetof(struct call_options, config)}, \
    {                                                                   \
        "json", OPTION_FLAG, offsetof(struct call_options, json)        \
    }
#define CALL_OPTION_HELP                                                                     \
    "  --socket PATH        where the daemon listens; else AUDITRUN_SOCKET, else [socket]\n" \
    "                       path of the configuration, else the installed default\n"         \
    "  --config FILE        configuration file; else AUDITRUN_CONFIG, else the default\n"    \
    "  --json               print the daemon's answer as one line of JSON\n"                 \
    "  -h, --help           this page\n"

/* Connects. 0 with *out owned, or an exit code after the complaint. */
int call_connect(const struct call_options *options, struct client **out) AR_MUST_CHECK;

/* The complaint for a client_outcome or -errno of a call (not CLIENT_OK). Returns the exit code. */
int call_failed(int outcome);

/* Prints an error of the daemon: as JSON on stdout, or as a message on stderr. option_of (may be
 * NULL) tells which option a JSON Pointer into params came from. Returns the exit code. */
int call_error(const json_t *error, bool json, const char *(*option_of)(const char *path));

/* Prints a value as one line of JSON on stdout. Returns an exit code. */
int call_print_json(const json_t *value);

/* One call with one answer. params NULL: none. EXIT_CODE_OK with *result owned; or the exit code
 * after the complaint. */
int call_daemon(const struct call_options *options, enum rpc_method method, const json_t *params,
                json_t **result) AR_MUST_CHECK;

#endif

/*
 * call.c - what the verbs that ask the daemon have in common.
 *
 * Everything here ends in an exit code: the complaint is printed where it is known best what to do
 * about it. Text of the daemon is foreign text: it is escaped.
 */
#include "cli/call.h"

#include "cli/config_file.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/terminal.h"

#include <string.h>

static const char *advice_for(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "You are not allowed to open it: its owner and group are set by [socket] of the "
               "configuration";
    case ENAMETOOLONG:
        return "The path of a Unix socket has at most 107 bytes";
    default:
        return "Is auditrund running? Name another socket with --socket PATH or AUDITRUN_SOCKET";
    }
}

int call_connect(const struct call_options *options, struct client **out)
{
    char message[CONFIG_FILE_MESSAGE_BYTES];
    AR_AUTO_FREE char *path = NULL;
    int rc = config_file_socket(options->socket, options->config, &path, message);
    if (rc < 0)
        return message_failure(rc, "cannot find the daemon's socket");
    if (rc > 0)
        return message_error(EXIT_CODE_CONFIG, "%s", message);
    rc = client_open(path, client_deadline(CALL_CONNECT_MS), out);
    if (rc == 0)
        return EXIT_CODE_OK;
    if (rc == -ENOMEM)
        return message_failure(rc, "cannot connect to the daemon");
    return message_error(EXIT_CODE_UNAVAILABLE, "cannot connect to %s: %s. %s", path,
                         rc > 0 ? "the daemon takes no connection" : strerror(-rc),
                         advice_for(-rc));
}

int call_failed(int outcome)
{
    switch (outcome) {
    case CLIENT_LATE:
        return message_error(EXIT_CODE_UNAVAILABLE, "the daemon gave no answer in time");
    case CLIENT_CLOSED:
        return message_error(EXIT_CODE_UNAVAILABLE,
                             "the daemon closed the connection before it answered; its log tells "
                             "why (a request may be longer than [socket] max_line)");
    case CLIENT_SIGNALED:
        return message_error(EXIT_CODE_CANCELLED, "interrupted");
    case CLIENT_NONSENSE:
        return message_error(EXIT_CODE_PROTOCOL, "what answers is no JSON-RPC 2.0: is the socket "
                                                 "that of auditrund?");
    default:
        return message_failure(outcome, "cannot talk to the daemon");
    }
}

int call_print_json(const json_t *value)
{
    AR_AUTO_FREE char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text)
        return message_failure(-ENOMEM, "cannot print the answer");
    if (puts(text) < 0 || fflush(stdout) != 0)
        return message_failure(-errno, "cannot write to standard output");
    return EXIT_CODE_OK;
}

/* Escaped text of a member, "" when it is not there or out of memory; owned by the caller. */
static char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return terminal_escape(text ? text : "", text ? strlen(text) : 0);
}

static void explain_params(const json_t *data, const char *(*option_of)(const char *path))
{
    AR_AUTO_FREE char *path = text_of(data, "path");
    AR_AUTO_FREE char *problem = text_of(data, "problem");
    if (!path || !problem)
        return;
    const char *option = option_of ? option_of(path) : NULL;
    (void)message_error(0, "the request is refused at \"%s\": %s%s%s", path, problem,
                        option ? "; that comes from " : "", option ? option : "");
}

static void explain_audit_failure(const json_t *data)
{
    AR_AUTO_FREE char *run_id = text_of(data, "run_id");
    AR_AUTO_FREE char *status = text_of(data, "terminal_status");
    AR_AUTO_FREE char *reason = text_of(data, "terminal_reason");
    if (!run_id || !status || !reason)
        return;
    bool kept = json_is_true(json_object_get(data, "kept"));
    (void)message_error(0, "run %s ended (%s, %s), but its record is not in the ledger yet; %s",
                        run_id, status, reason,
                        kept ? "the daemon keeps it on disk and appends it as soon as it can"
                             : "the daemon could NOT keep it on disk either: tell its operator");
}

int call_error(const json_t *error, bool json, const char *(*option_of)(const char *path))
{
    long long code = json_integer_value(json_object_get(error, "code"));
    const json_t *data = json_object_get(error, "data");
    int exit_code = exit_code_for_error(code);
    if (json) {
        int rc = call_print_json(error);
        return rc == EXIT_CODE_OK ? exit_code : rc;
    }
    AR_AUTO_FREE char *text = text_of(error, "message");
    if (code == RPC_INVALID_PARAMS)
        explain_params(data, option_of);
    else if (code == RPC_AUDIT_FAILURE)
        explain_audit_failure(data);
    else if (code == RPC_FORBIDDEN)
        (void)message_error(0, "forbidden: the configuration does not let you ask this ([client])");
    else if (code == RPC_INVALID_REQUEST)
        (void)message_error(0,
                            "the daemon refuses the request as a whole (error %lld); most likely "
                            "it is longer than [socket] max_line",
                            code);
    else if (code == RPC_NOT_FOUND)
        (void)message_error(0, "not found: there is nothing by that name that you may see");
    else
        (void)message_error(0, "the daemon answers with error %lld: %s", code, text ? text : "");
    return exit_code;
}

int call_daemon(const struct call_options *options, enum rpc_method method, const json_t *params,
                json_t **result)
{
    AR_CLEANUP(client_cleanup) struct client *client = NULL;
    int code = call_connect(options, &client);
    if (code != EXIT_CODE_OK)
        return code;
    int64_t deadline = client_deadline(CALL_ANSWER_MS);
    struct client_answer answer = {0};
    AR_AUTO_JSON json_t *none = json_object();
    int rc = client_send(client, "1", method, params ? params : none, deadline);
    if (rc == CLIENT_OK)
        rc = client_receive(client, deadline, &answer);
    if (rc != CLIENT_OK)
        return call_failed(rc);
    if (answer.error)
        code = call_error(answer.error, options->json, NULL);
    *result = AR_TAKE(answer.result);
    client_answer_free(&answer);
    return code;
}

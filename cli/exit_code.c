/*
 * exit_code.c - from statuses and JSON-RPC errors to exit codes: two tables.
 *
 * Only failed needs more than its status: there the code's own number decides, and what the code
 * cannot have chosen (a signal, a compiler that said no) has a number of its own.
 */
#include "cli/exit_code.h"

#include "protocol/rpc.h"

static const int by_status[STATUS_COUNT] = {
    [STATUS_NONE] = EXIT_CODE_PROTOCOL,
    [STATUS_SUCCEEDED] = EXIT_CODE_OK,
    [STATUS_FAILED] = EXIT_CODE_NO,
    [STATUS_TIMED_OUT] = EXIT_CODE_TIMED_OUT,
    [STATUS_LIMIT_EXCEEDED] = EXIT_CODE_LIMIT,
    [STATUS_CANCELLED] = EXIT_CODE_CANCELLED,
    [STATUS_CAPABILITY_DENIED] = EXIT_CODE_NOT_ALLOWED,
    [STATUS_UNAUTHORIZED] = EXIT_CODE_NOT_ALLOWED,
    [STATUS_DISABLED] = EXIT_CODE_NOT_ALLOWED,
    [STATUS_REFUSED] = EXIT_CODE_REFUSED,
    [STATUS_PROVIDER_FAILED] = EXIT_CODE_PROVIDER,
    [STATUS_INTERRUPTED] = EXIT_CODE_PROVIDER,
};

static const struct {
    long long rpc;
    int code;
} by_error[] = {
    {RPC_INVALID_PARAMS, EXIT_CODE_PARAMS},
    {RPC_AUDIT_FAILURE, EXIT_CODE_AUDIT},
    {RPC_FORBIDDEN, EXIT_CODE_NOT_ALLOWED},
    {RPC_NOT_FOUND, EXIT_CODE_NO_INPUT},
};

int exit_code_for_run(enum status status, enum reason reason, int exit_code, int signal)
{
    if ((unsigned)status >= STATUS_COUNT)
        return EXIT_CODE_PROTOCOL;
    if (status != STATUS_FAILED)
        return by_status[status];
    if (reason == REASON_COMPILE_FAILED)
        return EXIT_CODE_NOT_COMPILED;
    if (reason == REASON_KILLED_BY_SIGNAL && signal > 0 && signal <= 64)
        return EXIT_CODE_SIGNAL + signal;
    if (exit_code > 0 && exit_code <= 255)
        return exit_code;
    return by_status[status];
}

int exit_code_for_error(long long rpc_code)
{
    for (size_t i = 0; i < AR_COUNT(by_error); i++)
        if (by_error[i].rpc == rpc_code)
            return by_error[i].code;
    return EXIT_CODE_PROTOCOL;
}

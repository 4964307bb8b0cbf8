/*
 * throw.c - see throw.h.
 */
#include "cli/throw.h"

#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/show.h"

#include <stdio.h>
#include <string.h>

/* The operands as members of params. 0, or an exit code after the complaint. */
static int add_key(const char *title, json_t *params, const struct text_list *operands)
{
    enum switch_scope scope;
    if (operands->count == 0 || !switch_scope_from_word(operands->items[0], &scope))
        return message_usage(title, "which? all, company NAME, executor NAME or language NAME");
    const size_t wanted = scope == SWITCH_ALL ? 1 : 2;
    if (operands->count != wanted)
        return message_usage(title, wanted == 1 ? "all takes no name" : "which %s? One NAME",
                             operands->items[0]);
    if (json_object_set_new(params, "scope", json_string(operands->items[0])) != 0 ||
        (wanted == 2 && json_object_set_new(params, "name", json_string(operands->items[1])) != 0))
        return message_usage(title, "NAME is not UTF-8");
    return EXIT_CODE_OK;
}

static int build(const char *title, const struct throw_options *options,
                 const struct options_rest *rest, json_t *params)
{
    if (rest->behind.count > 0)
        return message_usage(title, "nothing belongs behind --");
    int code = add_key(title, params, &rest->operands);
    if (code != EXIT_CODE_OK)
        return code;
    if (!options->why)
        return message_usage(title, "why? Give --why TEXT: it goes into the ledger");
    if (json_object_set_new(params, "why", json_string(options->why)) != 0)
        return message_usage(title, "--why is not UTF-8");
    if (options->now && json_object_set_new(params, "now", json_true()) != 0)
        return message_failure(-ENOMEM, "cannot build the request");
    return EXIT_CODE_OK;
}

static void tell(enum rpc_method method, const json_t *result)
{
    const bool off = method == RPC_METHOD_DISABLE;
    const long long stopped = json_integer_value(json_object_get(result, "stopped"));
    if (json_is_true(json_object_get(result, "changed")))
        (void)puts(off ? "off: nothing starts there any more" : "on");
    else
        (void)puts(off ? "was off already" : "was not switched off by an operator");
    if (stopped > 0)
        (void)printf("%lld runs were told to end\n", stopped);
    if (!off && json_is_true(json_object_get(result, "configured_off")))
        (void)puts("it stays off: the configuration has enabled = no there");
}

int throw_switch(const char *title, enum rpc_method method, const struct throw_options *options,
                 const struct options_rest *rest)
{
    AR_AUTO_JSON json_t *params = json_object();
    AR_AUTO_JSON json_t *result = NULL;
    int code = build(title, options, rest, params);
    if (code == EXIT_CODE_OK)
        code = call_daemon(&options->call, method, params, &result);
    if (code != EXIT_CODE_OK)
        return code;
    if (options->call.json)
        code = call_print_json(result);
    else
        tell(method, result);
    if (code == EXIT_CODE_OK && !json_is_true(json_object_get(result, "durable")))
        return message_error(EXIT_CODE_STORE, "it counts now, but the daemon could NOT keep it: "
                                              "after a restart it will be as before");
    return code;
}

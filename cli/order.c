/*
 * order.c - what `auditrun run` was told to do.
 *
 * Whether a value is allowed is the daemon's decision and its words: here is only checked what has
 * to be known to build the request (K=V, PATH=FILE, units), and who the run is for, because a run
 * without company, actor and purpose is most likely a missing setting.
 */
#include "cli/order.h"

#include "cli/exit_code.h"
#include "cli/input.h"
#include "cli/message.h"

#include <string.h>

#define ROW(option, kind, member)                    \
    {                                                \
        option, kind, offsetof(struct order, member) \
    }

const struct option_row order_rows[ORDER_ROW_COUNT] = {
    CALL_OPTION_ROWS,
    ROW("language", OPTION_TEXT, language),
    ROW("company", OPTION_TEXT, company),
    ROW("actor", OPTION_TEXT, actor),
    ROW("purpose", OPTION_TEXT, purpose),
    ROW("executor", OPTION_TEXT, executor),
    ROW("network", OPTION_TEXT, network),
    ROW("host", OPTION_LIST, hosts),
    ROW("data-api", OPTION_LIST, data_api),
    ROW("secret", OPTION_LIST, secrets),
    ROW("secret-env", OPTION_LIST, secrets_env),
    ROW("read", OPTION_LIST, read),
    ROW("write", OPTION_LIST, write),
    ROW("wall", OPTION_DURATION, limits[LIMIT_WALL_MS]),
    ROW("cpu", OPTION_DURATION, limits[LIMIT_CPU_MS]),
    ROW("memory", OPTION_SIZE, limits[LIMIT_MEMORY_BYTES]),
    ROW("processes", OPTION_COUNT, limits[LIMIT_PROCESSES]),
    ROW("open-files", OPTION_COUNT, limits[LIMIT_OPEN_FILES]),
    ROW("scratch", OPTION_SIZE, limits[LIMIT_SCRATCH_BYTES]),
    ROW("output-limit", OPTION_SIZE, limits[LIMIT_OUTPUT_BYTES]),
    ROW("arg", OPTION_LIST, args),
    ROW("env", OPTION_LIST, env),
    ROW("file", OPTION_LIST, files),
    ROW("output-file", OPTION_LIST, output_files),
    ROW("stdin", OPTION_TEXT, stdin_path),
    ROW("key", OPTION_TEXT, key),
    ROW("wait", OPTION_DURATION, wait_ms),
    ROW("quiet", OPTION_FLAG, quiet),
    ROW("verbose", OPTION_FLAG, verbose),
    ROW("raw", OPTION_FLAG, raw),
    ROW("stream", OPTION_FLAG, stream),
};

const struct order order_defaults = {
    .limits = {OPTIONS_UNSET, OPTIONS_UNSET, OPTIONS_UNSET, OPTIONS_UNSET, OPTIONS_UNSET,
               OPTIONS_UNSET, OPTIONS_UNSET},
    .wait_ms = OPTIONS_UNSET,
};
_Static_assert(LIMIT_COUNT == 7, "each limit has its option and its default here");

static const struct {
    const char *pointer, *option;
} by_pointer[] = {
    {"/company", "--company"},
    {"/actor", "--actor"},
    {"/purpose", "--purpose"},
    {"/language", "--language"},
    {"/executor", "--executor"},
    {"/code", "the file with the code"},
    {"/args", "--arg"},
    {"/stdin", "--stdin"},
    {"/env", "--env"},
    {"/files", "--file"},
    {"/outputs", "--output-file"},
    {"/idempotency_key", "--key"},
    {"/grant/network/mode", "--network"},
    {"/grant/network/hosts", "--host"},
    {"/grant/data_api", "--data-api"},
    {"/grant/secrets_env", "--secret-env"},
    {"/grant/secrets", "--secret"},
    {"/grant/filesystem/read", "--read"},
    {"/grant/filesystem/write", "--write"},
    {"/grant/limits/wall_ms", "--wall"},
    {"/grant/limits/cpu_ms", "--cpu"},
    {"/grant/limits/memory_bytes", "--memory"},
    {"/grant/limits/processes", "--processes"},
    {"/grant/limits/open_files", "--open-files"},
    {"/grant/limits/scratch_bytes", "--scratch"},
    {"/grant/limits/output_bytes", "--output-limit"},
};

const char *order_option(const char *path)
{
    for (size_t i = 0; i < AR_COUNT(by_pointer); i++) {
        size_t length = strlen(by_pointer[i].pointer);
        if (strncmp(path, by_pointer[i].pointer, length) == 0 &&
            (path[length] == '\0' || path[length] == '/' || path[length] == '_'))
            return by_pointer[i].option;
    }
    return NULL;
}

size_t order_output_path(const char *item, const char **local)
{
    const char *equals = strchr(item, '=');
    *local = equals ? equals + 1 : item;
    return equals ? (size_t)(equals - item) : strlen(item);
}

/* The code's file is the first operand; without one before "--", the first one behind. */
static int take_operands(const char *title, struct order *order, const struct options_rest *rest)
{
    const struct text_list *operands = &rest->operands, *behind = &rest->behind;
    if (operands->count + behind->count == 0)
        return message_usage(title, "which code? Name a FILE, or - for standard input");
    if (operands->count > 1)
        return message_usage(title, "one FILE is run at a time; arguments for the code stand "
                                    "behind --");
    bool is_behind = operands->count == 0;
    order->file = is_behind ? behind->items[0] : operands->items[0];
    for (size_t i = is_behind ? 1 : 0; i < behind->count; i++) {
        int rc = text_list_add(&order->args, behind->items[i]);
        if (rc != 0)
            return message_failure(rc, "cannot read the command line");
    }
    return EXIT_CODE_OK;
}

static void from_environment(const char **value, const char *name)
{
    const char *text = getenv(name);
    if (!*value && text && *text)
        *value = text;
}

static int check_attribution(const char *title, struct order *order)
{
    from_environment(&order->company, "AUDITRUN_COMPANY");
    from_environment(&order->actor, "AUDITRUN_ACTOR");
    from_environment(&order->purpose, "AUDITRUN_PURPOSE");
    if (order->company && order->actor && order->purpose)
        return 0;
    return message_usage(title,
                         "who is it for, who asks, and why? Missing:%s%s%s (every run is "
                         "recorded with all three; AUDITRUN_COMPANY, AUDITRUN_ACTOR and "
                         "AUDITRUN_PURPOSE hold defaults)",
                         order->company ? "" : " --company", order->actor ? "" : " --actor",
                         order->purpose ? "" : " --purpose");
}

/* Each item must hold "=" behind at least one character. */
static int check_pairs(const char *title, const struct text_list *list, const char *form)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        if (!equals || equals == list->items[i])
            return message_usage(title, "the form is %s", form);
    }
    return 0;
}

static int check_streams(const char *title, const struct order *order)
{
    if (order->stdin_path && strcmp(order->stdin_path, "-") == 0 && strcmp(order->file, "-") == 0)
        return message_usage(title, "standard input cannot be both the code and its --stdin");
    if (order->quiet && order->verbose)
        return message_usage(title, "--quiet or --verbose, not both");
    return 0;
}

int order_complete(const char *title, struct order *order, const struct options_rest *rest)
{
    int code = take_operands(title, order, rest);
    if (code == EXIT_CODE_OK)
        code = check_attribution(title, order);
    if (code == EXIT_CODE_OK)
        code = check_pairs(title, &order->env, "--env NAME=VALUE");
    if (code == EXIT_CODE_OK)
        code = check_pairs(title, &order->files, "--file PATH=LOCALFILE");
    if (code == EXIT_CODE_OK)
        code = check_streams(title, order);
    return code;
}

/* ---- params ---------------------------------------------------------------------------------- */

/* Sets a member, which takes the value; false when out of memory or the text is not UTF-8. */
static bool put(json_t *object, const char *name, json_t *value)
{
    return json_object_set_new(object, name, value) == 0;
}

static bool put_text(json_t *object, const char *name, const char *text)
{
    return !text || put(object, name, json_string(text));
}

/* Nothing for an empty list. */
static bool put_list(json_t *object, const char *name, const struct text_list *list)
{
    if (list->count == 0)
        return true;
    json_t *array = json_array();
    bool good = array != NULL;
    for (size_t i = 0; good && i < list->count; i++)
        good = json_array_append_new(array, json_string(list->items[i])) == 0;
    if (!good)
        json_decref(array);
    return good && put(object, name, array);
}

/* An object under a name, borrowed back for filling; NULL when out of memory. */
static json_t *put_object(json_t *object, const char *name)
{
    return put(object, name, json_object()) ? json_object_get(object, name) : NULL;
}

static bool put_network(json_t *grant, const struct order *order)
{
    const char *mode = order->network;
    if (!mode && order->hosts.count > 0)
        mode = network_mode_word(NETWORK_ALLOWLIST);
    if (!mode)
        return true;
    json_t *network = put_object(grant, "network");
    return network && put_text(network, "mode", mode) && put_list(network, "hosts", &order->hosts);
}

/* What is a variable is a file too. */
static bool put_secrets(json_t *grant, const struct order *order)
{
    if (!put_list(grant, "secrets_env", &order->secrets_env) ||
        !put_list(grant, "secrets", &order->secrets))
        return false;
    for (size_t i = 0; i < order->secrets_env.count; i++) {
        const char *name = order->secrets_env.items[i];
        if (!json_object_get(grant, "secrets") && !put(grant, "secrets", json_array()))
            return false;
        if (!text_list_has(&order->secrets, name) &&
            json_array_append_new(json_object_get(grant, "secrets"), json_string(name)) != 0)
            return false;
    }
    return true;
}

static bool put_filesystem(json_t *grant, const struct order *order)
{
    if (order->read.count + order->write.count == 0)
        return true;
    json_t *filesystem = put_object(grant, "filesystem");
    return filesystem && put_list(filesystem, "read", &order->read) &&
           put_list(filesystem, "write", &order->write);
}

static bool put_limits(json_t *grant, const struct order *order)
{
    json_t *limits = put_object(grant, "limits");
    for (size_t i = 0; limits && i < LIMIT_COUNT; i++)
        if (order->limits[i] != OPTIONS_UNSET &&
            !put(limits, limit_word((enum limit)i), json_integer(order->limits[i])))
            return false;
    return limits != NULL;
}

static bool put_grant(json_t *params, const struct order *order)
{
    json_t *grant = put_object(params, "grant");
    return grant && put_network(grant, order) && put_list(grant, "data_api", &order->data_api) &&
           put_secrets(grant, order) && put_filesystem(grant, order) && put_limits(grant, order);
}

static bool put_env(json_t *params, const struct order *order)
{
    json_t *env = order->env.count ? put_object(params, "env") : NULL;
    for (size_t i = 0; i < order->env.count; i++) {
        const char *item = order->env.items[i];
        const char *equals = strchr(item, '=');
        AR_AUTO_FREE char *name = equals ? strndup(item, (size_t)(equals - item)) : NULL;
        if (!name || !put(env, name, json_string(equals + 1)))
            return false;
    }
    return true;
}

static bool put_outputs(json_t *params, const struct order *order)
{
    json_t *outputs = order->output_files.count ? json_array() : NULL;
    for (size_t i = 0; outputs && i < order->output_files.count; i++) {
        const char *item = order->output_files.items[i], *local = NULL;
        size_t length = order_output_path(item, &local);
        if (json_array_append_new(outputs, json_stringn(item, length)) != 0) {
            json_decref(outputs);
            return false;
        }
    }
    return order->output_files.count == 0 || put(params, "outputs", outputs);
}

/* 0 or an exit code after the complaint. */
static int put_one_file(json_t *files, const char *item)
{
    const char *equals = strchr(item, '=');
    struct bytes content = {0};
    int code = equals ? input_read(equals + 1, &content) : EXIT_CODE_USAGE;
    if (code != EXIT_CODE_OK)
        return code;
    AR_AUTO_JSON json_t *file = json_object();
    bool good = put(file, "path", json_stringn(item, (size_t)(equals - item))) &&
                input_put(file, "text", "base64", &content) == 0 &&
                json_array_append(files, file) == 0;
    bytes_free(&content);
    return good ? EXIT_CODE_OK
                : message_error(EXIT_CODE_USAGE, "a --file cannot be sent: its path is not UTF-8, "
                                                 "or memory is short");
}

static int put_files(json_t *params, const struct order *order)
{
    if (order->files.count == 0)
        return EXIT_CODE_OK;
    if (!put(params, "files", json_array()))
        return message_failure(-ENOMEM, "cannot build the request");
    for (size_t i = 0; i < order->files.count; i++) {
        int code = put_one_file(json_object_get(params, "files"), order->files.items[i]);
        if (code != EXIT_CODE_OK)
            return code;
    }
    return EXIT_CODE_OK;
}

static int put_stdin(json_t *params, const struct order *order)
{
    struct bytes content = {0};
    if (!order->stdin_path)
        return EXIT_CODE_OK;
    int code = input_read(order->stdin_path, &content);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = input_put(params, "stdin", "stdin_base64", &content);
    bytes_free(&content);
    return rc == 0 ? EXIT_CODE_OK : message_failure(rc, "cannot build the request");
}

static int put_code(json_t *params, const struct order *order)
{
    struct bytes code = {0};
    int exit_code = input_read(order->file, &code);
    if (exit_code != EXIT_CODE_OK)
        return exit_code;
    const char *language = order->language ? order->language : input_language(order->file, &code);
    int rc = input_put(params, "code", "code_base64", &code);
    bytes_free(&code);
    if (!language)
        return message_error(EXIT_CODE_USAGE,
                             "which language is %s? Its name does not tell: say "
                             "--language (auditrun executors lists them)",
                             order->file);
    if (rc != 0)
        return message_failure(rc, "cannot build the request");
    return put_text(params, "language", language)
               ? EXIT_CODE_OK
               : message_error(EXIT_CODE_USAGE, "--language is not UTF-8");
}

int order_params(const struct order *order, json_t **params)
{
    AR_AUTO_JSON json_t *object = json_object();
    int code = put_code(object, order);
    if (code == EXIT_CODE_OK)
        code = put_stdin(object, order);
    if (code == EXIT_CODE_OK)
        code = put_files(object, order);
    if (code != EXIT_CODE_OK)
        return code;
    bool good =
        put_text(object, "company", order->company) && put_text(object, "actor", order->actor) &&
        put_text(object, "purpose", order->purpose) &&
        put_text(object, "executor", order->executor) &&
        put_text(object, "idempotency_key", order->key) && put_list(object, "args", &order->args) &&
        put_env(object, order) && put_outputs(object, order) && put_grant(object, order) &&
        (!order->stream || put(object, "stream", json_true()));
    if (!good)
        return message_error(EXIT_CODE_USAGE, "the request cannot be built: an option's value is "
                                              "not UTF-8, or memory is short");
    *params = AR_TAKE(object);
    return EXIT_CODE_OK;
}

/*
 * order.c - turns a spec into what is executed: argument vectors and environments.
 *
 * A run that is granted anything that this executor does not advertise is not started: the daemon
 * never asks for it, and if it does, doing less than what is granted in silence would be worse.
 */
#include "executors/namespace/order.h"

#include "executors/namespace/mounts.h"
#include "executors/namespace/network.h"
#include "executors/namespace/template.h"

#include <stdio.h>
#include <string.h>

#define PROGRAM_PATH MOUNTS_CODE "/program" /* of a compiled language */

static const char *const base_variables[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                             "HOME=" MOUNTS_WORK,
                                             "LANG=C.UTF-8",
                                             "TMPDIR=/tmp",
                                             "USER=sandbox",
                                             NULL};

#define NODE_PROXY    TEMPLATE_MODULES "/javascript/auditrun-proxy.js"
#define MAX_VARIABLES 24 /* of ours; a bound, not a figure */

void order_init(struct order *order)
{
    *order =
        (struct order){.program = -1, .streams = {-1, -1, -1, -1}, .data_port = -1, .secrets = -1};
}

/* ---- the grant -------------------------------------------------------------------------------- */

/* Is all that is granted among what the slot is for? memory_bytes, wall_ms and output_bytes are
 * enforced by the host, and are only passed on. */
static bool offered(const struct slot *slot, const struct grant *grant)
{
    const unsigned reach = (grant->network != NETWORK_NONE ? REACH_NETWORK : 0u) |
                           (grant->read.count + grant->write.count > 0 ? REACH_FILES : 0u);
    if (reach != slot->reach)
        return false;
    return !grant->limits.has[LIMIT_CPU_MS] || slot->counter >= 0 ||
           slot->host_enforces[LIMIT_CPU_MS];
}

/* Has the order what it is granted, and nothing else? */
static bool has_descriptors(const struct order *order)
{
    const struct grant *grant = &order->spec->grant;
    return (grant->data_api.count > 0) == (order->data_port >= 0) &&
           (grant->secrets.count > 0) == (order->secrets >= 0) &&
           grant->read.count + grant->write.count == order->tree_count;
}

/* ---- variables -------------------------------------------------------------------------------- */

static size_t add_all(const char **list, size_t count, const char *const *more)
{
    while (*more && count < MAX_VARIABLES)
        list[count++] = *more++;
    list[count] = NULL;
    return count;
}

/* Those that every program has, and those that tell the code of what it is granted. */
static void choose_variables(const struct order *order, bool has_modules,
                             const char *list[MAX_VARIABLES + 1])
{
    static const char *const port[] = {"AUDITRUN_API_FD=3", NULL};
    static const char *const modules[] = {"PYTHONPATH=" TEMPLATE_MODULES "/python",
                                          "NODE_PATH=" TEMPLATE_MODULES "/javascript", NULL};
    size_t count = add_all(list, 0, base_variables);
    if (has_modules && order->data_port >= 0)
        count = add_all(list, count, modules);
    if (order->spec->grant.network != NETWORK_NONE)
        count = add_all(list, count, network_variables);
    if (order->data_port >= 0)
        (void)add_all(list, count, port);
}

/* Takes out the variable that has the name of this one, if there is one. */
static size_t drop_same(char **env, size_t count, const char *variable)
{
    const size_t length = strcspn(variable, "=") + 1;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(env[i], variable, length) == 0)
            free(env[i]);
        else
            env[kept++] = env[i];
    env[kept] = NULL;
    return kept;
}

/* Node.js has to be told to load what makes its fetch() use the proxy, whatever else it is told. */
static int add_preload(struct order *order)
{
    static const char name[] = "NODE_OPTIONS=", preload[] = "--require=" NODE_PROXY;
    size_t count = 0, at;
    char *variable = NULL;
    while (order->env[count])
        count++;
    for (at = 0; at < count && strncmp(order->env[at], name, strlen(name)) != 0; at++)
        continue;
    const char *before = at < count ? order->env[at] + strlen(name) : "";
    if (asprintf(&variable, "%s%s%s%s", name, before, *before ? " " : "", preload) < 0)
        return -ENOMEM;
    char **env = reallocarray(order->env, count + 2, sizeof(*env));
    if (!env) {
        free(variable);
        return -ENOMEM;
    }
    order->env = env;
    if (at < count)
        free(env[at]);
    else
        env[count + 1] = NULL;
    env[at] = variable;
    return 0;
}

static int add_secret_variables(struct order *order)
{
    const struct text_list *names = &order->spec->grant.secrets_env;
    size_t count = 0;
    while (order->env[count])
        count++;
    char **env = reallocarray(order->env, count + names->count + 1, sizeof(*env));
    if (!env)
        return -ENOMEM;
    order->env = env;
    for (size_t i = 0; i < names->count; i++) {
        char *variable;
        int result = vault_variable(&order->vault, names->items[i], &variable);
        if (result != 0)
            return result;
        count = drop_same(env, count, variable);
        env[count++] = variable;
        env[count] = NULL;
        order->secret_variables++;
    }
    return 0;
}

/* The values are mapped as late as here: nothing else can fail any more. */
static int take_secrets(struct order *order, struct failure *failure)
{
    if (order->secrets < 0)
        return 0;
    int result = vault_open(&order->vault, order->secrets, &order->spec->grant.secrets);
    (void)close(order->secrets);
    order->secrets = -1;
    if (result < 0)
        return step_fail(failure, STEP_SECRETS, -result);
    result = add_secret_variables(order);
    if (result == 0)
        return 0;
    return step_fail(failure, result < 0 ? STEP_SECRETS : STEP_VARIABLE, result < 0 ? -result : 0);
}

/* ---- orders ----------------------------------------------------------------------------------- */

static bool make_vectors(struct order *order, const struct language *language, bool has_modules)
{
    AR_AUTO_FREE char *code_path = NULL;
    const char *variables[MAX_VARIABLES + 1];
    if (asprintf(&code_path, MOUNTS_CODE "/%s", language->file) < 0) {
        code_path = NULL;
        return false;
    }
    const struct limits *limits = &order->spec->grant.limits;
    const struct languages_places places = {
        .file = code_path, .program = PROGRAM_PATH, .memory_mb = languages_memory_mb(limits)};
    if (language->compile.count > 0) {
        order->compile = languages_command(&language->compile, &places, NULL);
        order->base_env = languages_environment(language, &places, base_variables, NULL);
        if (!order->compile || !order->base_env)
            return false;
    }
    choose_variables(order, has_modules, variables);
    order->run = languages_command(&language->run, &places, &order->spec->args);
    order->env = languages_environment(language, &places, variables, order->spec);
    if (!order->run || !order->env)
        return false;
    bool preloads = order->spec->grant.network != NETWORK_NONE && access(NODE_PROXY, R_OK) == 0;
    return !preloads || add_preload(order) == 0;
}

int order_make(struct order *order, const struct slot *slot, const struct languages *languages,
               struct spec *spec, struct failure *failure)
{
    order->spec = spec;
    const struct language *language = languages_find(languages, spec->language);
    if (!language)
        return step_fail(failure, STEP_LANGUAGE, 0);
    if (!offered(slot, &spec->grant) || !has_descriptors(order))
        return step_fail(failure, STEP_GRANT, 0);
    order->code_file = language->file;
    return make_vectors(order, language, slot->has_modules) ? take_secrets(order, failure)
                                                            : step_fail(failure, STEP_SPEC, ENOMEM);
}

int order_make_own(struct order *order, const struct slot *slot, int program, char **words,
                   struct spec *spec, struct failure *failure)
{
    static const struct language none = {0};
    const struct languages_places nowhere = {.file = "", .program = ""};
    const char *variables[MAX_VARIABLES + 1];

    order->spec = spec;
    order->run = words;
    order->program = program;
    order->code_file = "program";
    if (!offered(slot, &spec->grant) || !has_descriptors(order))
        return step_fail(failure, STEP_GRANT, 0);
    choose_variables(order, slot->has_modules, variables);
    order->env = languages_environment(&none, &nowhere, variables, spec);
    return order->env ? take_secrets(order, failure) : step_fail(failure, STEP_SPEC, ENOMEM);
}

void order_wipe(struct order *order)
{
    size_t count = 0;
    vault_wipe(&order->vault);
    while (order->secret_variables > 0 && order->env[count])
        count++;
    for (; order->secret_variables > 0; order->secret_variables--, count--)
        explicit_bzero(order->env[count - 1], strlen(order->env[count - 1]));
}

void order_free(struct order *order)
{
    order_wipe(order);
    spec_free(order->spec);
    languages_free_vector(order->compile);
    languages_free_vector(order->run);
    languages_free_vector(order->base_env);
    languages_free_vector(order->env);
    order_init(order);
}

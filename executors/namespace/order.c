/*
 * order.c - turns a spec into what is executed: argument vectors and environments.
 *
 * A run that is granted anything that this executor does not advertise is not started: the daemon
 * never asks for it, and if it does, doing less than what is granted in silence would be worse.
 */
#include "executors/namespace/order.h"

#include "executors/namespace/mounts.h"

#include <stdio.h>
#include <string.h>

#define PROGRAM_PATH MOUNTS_CODE "/program" /* of a compiled language */

static const char *const base_variables[][2] = {
    {"PATH", "/usr/local/bin:/usr/bin:/bin"},
    {"HOME", MOUNTS_WORK},
    {"LANG", "C.UTF-8"},
    {"TMPDIR", "/tmp"},
    {"USER", "sandbox"},
};

void order_init(struct order *order)
{
    *order = (struct order){.program = -1, .streams = {-1, -1, -1, -1}};
}

static bool has_variable(const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->env_count; i++)
        if (strcmp(spec->env[i].name, name) == 0)
            return true;
    return false;
}

static bool add_variable(char **vector, size_t *count, const char *name, const char *value)
{
    if (asprintf(&vector[*count], "%s=%s", name, value) < 0) {
        vector[*count] = NULL;
        return false;
    }
    ++*count;
    return true;
}

/* Our variables, and those of the request over them (spec may be NULL). NULL: out of memory. */
static char **make_env(const struct spec *spec)
{
    const size_t more = spec ? spec->env_count : 0;
    size_t count = 0;
    bool good = true;
    char **vector = calloc(AR_COUNT(base_variables) + more + 1, sizeof(*vector));
    if (!vector)
        return NULL;
    for (size_t i = 0; good && i < AR_COUNT(base_variables); i++)
        if (!spec || !has_variable(spec, base_variables[i][0]))
            good = add_variable(vector, &count, base_variables[i][0], base_variables[i][1]);
    for (size_t i = 0; good && i < more; i++)
        good = add_variable(vector, &count, spec->env[i].name, spec->env[i].value);
    if (good)
        return vector;
    languages_free_vector(vector);
    return NULL;
}

/* Is all that is granted among what the envelope has? memory_bytes, wall_ms and output_bytes are
 * enforced by the host, and are only passed on. */
static bool offered(const struct slot *slot, const struct grant *grant)
{
    if (grant->network != NETWORK_NONE || grant->data_api.count > 0 || grant->secrets.count > 0 ||
        grant->read.count > 0 || grant->write.count > 0)
        return false;
    return !grant->limits.has[LIMIT_CPU_MS] || slot->counter >= 0 ||
           slot->host_enforces[LIMIT_CPU_MS];
}

static bool make_vectors(struct order *order, const struct language *language)
{
    AR_AUTO_FREE char *code_path = NULL;
    if (asprintf(&code_path, MOUNTS_CODE "/%s", language->file) < 0) {
        code_path = NULL;
        return false;
    }
    if (language->compile.count > 0)
        order->compile = languages_vector(&language->compile, code_path, PROGRAM_PATH, NULL);
    order->run = languages_vector(&language->run, code_path, PROGRAM_PATH, &order->spec->args);
    order->base_env = make_env(NULL);
    order->env = make_env(order->spec);
    return (language->compile.count == 0 || order->compile) && order->run && order->base_env &&
           order->env;
}

int order_make(struct order *order, const struct slot *slot, const struct languages *languages,
               struct spec *spec, struct failure *failure)
{
    order->spec = spec;
    const struct language *language = languages_find(languages, spec->language);
    if (!language)
        return step_fail(failure, STEP_LANGUAGE, 0);
    if (!offered(slot, &spec->grant))
        return step_fail(failure, STEP_GRANT, 0);
    order->code_file = language->file;
    return make_vectors(order, language) ? 0 : step_fail(failure, STEP_SPEC, ENOMEM);
}

void order_free(struct order *order)
{
    spec_free(order->spec);
    languages_free_vector(order->compile);
    languages_free_vector(order->run);
    languages_free_vector(order->base_env);
    languages_free_vector(order->env);
    order_init(order);
}

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

static const char *const base_variables[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                             "HOME=" MOUNTS_WORK,
                                             "LANG=C.UTF-8",
                                             "TMPDIR=/tmp",
                                             "USER=sandbox",
                                             NULL};

void order_init(struct order *order)
{
    *order = (struct order){.program = -1, .streams = {-1, -1, -1, -1}};
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
    const struct limits *limits = &order->spec->grant.limits;
    const struct languages_places places = {
        .file = code_path, .program = PROGRAM_PATH, .memory_mb = languages_memory_mb(limits)};
    if (language->compile.count > 0) {
        order->compile = languages_command(&language->compile, &places, NULL);
        order->base_env = languages_environment(language, &places, base_variables, NULL);
        if (!order->compile || !order->base_env)
            return false;
    }
    order->run = languages_command(&language->run, &places, &order->spec->args);
    order->env = languages_environment(language, &places, base_variables, order->spec);
    return order->run && order->env;
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

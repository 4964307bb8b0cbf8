/*
 * provider.c - takes runs from the control socket, has a sandbox do each, reports.
 *
 * A run that is granted anything that this executor does not advertise is not started: the daemon
 * never asks for it, and if it does, doing less than what is granted in silence would be worse.
 */
#include "executors/namespace/provider.h"

#include "executors/common/serve.h"
#include "executors/common/spec_file.h"
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
    return !grant->limits.has[LIMIT_CPU_MS] || slot->counter >= 0;
}

int provider_make_order(const struct slot *slot, const struct languages *languages,
                        const struct spec *spec, const int streams[4], struct inside_order *order,
                        struct failure *failure)
{
    AR_AUTO_FREE char *code_path = NULL;

    *order = (struct inside_order){.slot = slot, .spec = spec, .program = -1};
    memcpy(order->streams, streams, sizeof(order->streams));
    const struct language *language = languages_find(languages, spec->language);
    if (!language)
        return step_fail(failure, STEP_LANGUAGE, 0);
    if (!offered(slot, &spec->grant))
        return step_fail(failure, STEP_GRANT, 0);
    order->code_file = language->file;
    if (asprintf(&code_path, MOUNTS_CODE "/%s", language->file) < 0) {
        code_path = NULL;
        return step_fail(failure, STEP_SPEC, ENOMEM);
    }
    if (language->compile.count > 0)
        order->compile = languages_vector(&language->compile, code_path, PROGRAM_PATH, NULL);
    order->run = languages_vector(&language->run, code_path, PROGRAM_PATH, &spec->args);
    order->base_env = make_env(NULL);
    order->env = make_env(spec);
    if ((language->compile.count > 0 && !order->compile) || !order->run || !order->base_env ||
        !order->env) {
        provider_free_order(order);
        return step_fail(failure, STEP_SPEC, ENOMEM);
    }
    return 0;
}

void provider_free_order(struct inside_order *order)
{
    languages_free_vector(order->compile);
    languages_free_vector(order->run);
    languages_free_vector(order->base_env);
    languages_free_vector(order->env);
    *order = (struct inside_order){.program = -1, .streams = {-1, -1, -1, -1}};
}

/* Reads the spec and starts the sandbox. 0, or negative with *failure set. */
static int start_run(struct slot *slot, const struct languages *languages,
                     const struct serve_order *from, struct sandbox *sandbox,
                     struct failure *failure)
{
    struct spec *spec = NULL;
    struct inside_order order;

    int result = spec_file_read(from->descriptors[SERVE_SPEC], from->spec_bytes, &spec);
    if (result != 0)
        return step_fail(failure, STEP_SPEC, result < 0 ? -result : 0);
    result = provider_make_order(slot, languages, spec, &from->descriptors[SERVE_STDIN], &order,
                                 failure);
    if (result == 0) {
        result = sandbox_start(slot, &order, sandbox, failure);
        provider_free_order(&order);
    }
    spec_free(spec);
    return result;
}

/* One run, from the order to the report. SERVE_EVENT, SERVE_GONE or -errno. */
static int do_run(struct slot *slot, const struct languages *languages, const struct serve *serve,
                  struct serve_order *from)
{
    struct sandbox sandbox = {.pidfd = -1};
    struct failure failure = {0};
    struct report report = {.outcome = OUTCOME_SETUP_FAILED, .usage = USAGE_UNKNOWN};

    int result = start_run(slot, languages, from, &sandbox, &failure);
    serve_order_close(from); /* the sandbox has its own; the daemon waits for the last one to go */
    if (result == 0) {
        int event = serve_wait(serve, sandbox.pidfd);
        if (event != SERVE_EVENT)
            sandbox_kill(&sandbox);
        result = sandbox_finish(slot, &sandbox, &report, &failure);
        if (event != SERVE_EVENT || result < 0)
            return event != SERVE_EVENT ? event : result;
    }
    if (report.outcome == OUTCOME_SETUP_FAILED)
        step_tell(&failure);
    return serve_report(serve, &report);
}

static int serve_runs(struct slot *slot, const struct languages *languages,
                      const struct serve *serve)
{
    struct serve_order order;
    for (;;) {
        int result = serve_ready(serve);
        if (result == 0)
            result = serve_receive(serve, &order);
        if (result == SERVE_EVENT)
            result = do_run(slot, languages, serve, &order);
        if (result != SERVE_EVENT)
            return result;
    }
}

static int open_and_serve(struct slot *slot, const struct languages *languages)
{
    struct serve serve;
    int result = serve_open(&serve);
    if (result == 0)
        result = serve_runs(slot, languages, &serve);
    serve_close(&serve);
    if (result == -EPIPE || result > 0)
        return 0; /* the daemon is gone, or wants us to go */
    if (result < 0)
        (void)fprintf(stderr,
                      "auditrun-executor-namespace: the control socket (descriptor 3): %s\n",
                      strerror(-result));
    return result;
}

int provider_serve(const struct slot_options *options, const struct languages *languages)
{
    struct failure failure = {0};
    struct slot slot;

    int result = slot_enter(&slot, options, &failure);
    if (result < 0)
        step_tell(&failure);
    else
        result = open_and_serve(&slot, languages);
    slot_leave(&slot);
    return result;
}

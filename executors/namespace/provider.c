/*
 * provider.c - has one sandbox after the other do a run each, and reports.
 *
 * The next sandbox is built while nobody waits: after the daemon has cleared away what the last run
 * left. Its first process says that it is ready, and receives the order itself; the launcher sleeps
 * from there to the report.
 */
#include "executors/namespace/provider.h"

#include "executors/common/serve.h"
#include "executors/common/spec_file.h"
#include "executors/namespace/sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct provider {
    struct slot *slot;
    const struct languages *languages;
    struct serve serve;
};

static void tell_control(int result)
{
    (void)fprintf(stderr, "auditrun-executor-namespace: the control socket (descriptor 3): %s\n",
                  strerror(-result));
}

/* Descriptors of an order go to where the sandbox looks for them. */
static void take_descriptors(const struct serve_order *received, struct order *order)
{
    const struct spec_run *run = &received->run;
    const int *all = received->descriptors;
    memcpy(order->streams, &all[SERVE_STDIN], sizeof(order->streams));
    if (run->data_port)
        order->data_port = all[SERVE_DATA_PORT];
    if (run->secrets)
        order->secrets = all[spec_run_secrets_place(run)];
    memcpy(order->trees, &all[spec_run_paths_place(run)], run->paths * sizeof(int));
    order->tree_count = run->paths;
    if (run->data_port) /* the code may not know how to wait for it */
        (void)fcntl(order->data_port, F_SETFL, 0);
}

/* In the first process of a sandbox: says ready and waits for the run. What is received belongs to
 * that process and goes with it. */
static int take_run(void *context, struct order *order, struct failure *failure)
{
    const struct provider *provider = context;
    /* The launcher's end ends the wait, as signals do for the launcher. */
    const struct serve serve = {.control = provider->serve.control,
                                .signals = provider->slot->self};
    struct serve_order received;
    struct spec *spec = NULL;

    int result = serve_ready(&serve, true);
    if (result == 0)
        result = serve_receive(&serve, &received);
    if (result != SERVE_EVENT) {
        if (result < 0 && result != -EPIPE)
            tell_control(result);
        return 1;
    }
    take_descriptors(&received, order);
    result = spec_file_read(received.descriptors[SERVE_SPEC], received.run.spec_bytes, &spec);
    if (result != 0)
        return step_fail(failure, STEP_SPEC, result < 0 ? -result : 0);
    return order_make(order, provider->slot, provider->languages, spec, failure);
}

static int hand_over(void *context, int listener)
{
    const struct provider *provider = context;
    return serve_listener(&provider->serve, listener);
}

/* What a sandbox is, once its run is over and nothing of it is left. */
enum ending { ENDED, ENDED_WITH_SLOT };

static int report_run(struct provider *provider, const struct report *report)
{
    struct slot *slot = provider->slot;
    int swept = slot_sweep_sockets(slot);
    if (swept == -ETIME && slot->board.has_port) /* they are on their way to the daemon */
        swept = 1;
    board_mark(&slot->board, MARK_CHECKED);
    int result = swept < 0 ? swept : serve_report(&provider->serve, report);
    if (slot->timed)
        board_tell(&slot->board);
    /* Mountpoints of host paths were made in the slot's root. */
    return result < 0 ? result : swept > 0 || slot->reach & REACH_FILES;
}

/* One sandbox, from its start to the report of its run. ENDED, ENDED_WITH_SLOT (also when the daemon
 * wants us to go), or negative. */
static int do_run(struct provider *provider)
{
    const struct inside_source source = {
        .take = take_run, .listening = hand_over, .context = provider};
    struct sandbox sandbox;
    struct failure failure = {0};
    struct report report;

    int result = sandbox_start(&sandbox, provider->slot, &source, &failure);
    if (result < 0) {
        step_tell(&failure);
        return result;
    }
    int event = serve_watch(&provider->serve, sandbox.pidfd);
    if (event != SERVE_EVENT)
        sandbox_kill(&sandbox);
    result = sandbox_finish(&sandbox, &report, &failure);
    if (failure.step != STEP_NONE)
        step_tell(&failure);
    if (result < 0 || event < 0)
        return event < 0 ? event : result;
    if (result == 0 && event == SERVE_GONE) /* stopped: swept as far as there is time */
        result = slot_sweep_sockets(provider->slot);
    if (result != 0 || event != SERVE_EVENT)
        return ENDED_WITH_SLOT;
    result = report_run(provider, &report);
    return result > 0 ? ENDED_WITH_SLOT : result;
}

static int serve_runs(struct provider *provider)
{
    for (;;) {
        int result = do_run(provider);
        if (result == ENDED)
            result = serve_await_clear(&provider->serve);
        if (result != 0)
            return result;
    }
}

static int open_and_serve(struct slot *slot, const struct languages *languages)
{
    struct provider provider = {.slot = slot, .languages = languages};
    int result = serve_open(&provider.serve);
    if (result < 0)
        tell_control(result);
    else
        result = serve_runs(&provider);
    serve_close(&provider.serve);
    return result == -EPIPE || result > 0 ? 0 : result; /* the daemon is gone, or wants us to go */
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

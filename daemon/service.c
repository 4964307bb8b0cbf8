/*
 * service.c - the daemon as a whole.
 *
 * Start: journal (what was left), ledger and executors (asked side by side), then, when both have
 * answered, what was left goes to the ledger and the socket opens. No client is served before it is
 * known whether the ledger is up and what the executors can enforce.
 *
 * End, on SIGTERM: no more connections, runs that come are refused and recorded; those on the line go
 * on until drain_timeout and are stopped then; when the last has been answered, the end is written
 * into the ledger and signed; when the answers are sent, everything is taken down in the opposite
 * order. A second SIGTERM stops the runs at once.
 */
#include "daemon/service.h"

#include "daemon/activation.h"
#include "daemon/chronicle.h"
#include "daemon/clock.h"
#include "daemon/clock_watch.h"
#include "daemon/deadline.h"
#include "daemon/journal.h"
#include "daemon/ledger.h"
#include "daemon/listener.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/metrics_server.h"
#include "daemon/notify.h"
#include "daemon/peer.h"
#include "daemon/queue.h"
#include "daemon/recovery.h"
#include "daemon/registry.h"
#include "daemon/reload.h"
#include "daemon/resolver.h"
#include "daemon/run.h"
#include "daemon/secrets.h"
#include "daemon/signer.h"
#include "daemon/spawn.h"
#include "daemon/switches.h"

#include <string.h>

#define SERVICE_FLUSH_STEP_MS 10
#define SERVICE_FLUSH_MS      2000
#define SERVICE_FEEDS         3 /* in an interval of the watchdog */

struct service {
    const struct config *config; /* at the start; line.config is the one in force */
    const char *path;
    struct notify notify;
    struct loop *loop;
    struct line line;
    struct recovery *recovery;
    struct listener *listener;
    struct reload *reload;
    struct clock_watch *clock_watch;
    struct metrics_server *metrics;
    struct deadline drain, flush;
    struct deadline watchdog;
    int id_space;  /* borrowed; -1: none */
    int inherited; /* the socket of the service manager; -1: none, or the listener's */
    int64_t flush_until_us;
    bool closed; /* the end is in the ledger, or could not be put there */
    bool executors_answered, ledger_answered, failed;
};

static void finish_start(struct service *service)
{
    if (!service->executors_answered || !service->ledger_answered || service->listener)
        return;
    service->recovery = recovery_start(&service->line);
    const bool activated = service->inherited >= 0;
    int rc = service->recovery ? listener_open(&service->line, base_take_fd(&service->inherited),
                                               &service->listener)
                               : -ENOMEM;
    if (rc == 0) {
        log_info("ready: writer %s, socket %s", ledger_writer(service->line.ledger),
                 activated ? "of the service manager" : service->line.config->socket_path);
        notify_ready(&service->notify, "serving");
        return;
    }
    log_error("cannot listen on %s: %s", service->line.config->socket_path,
              rc == -EADDRINUSE ? "another daemon does" : strerror(-rc));
    service->failed = true;
    loop_stop(service->loop);
}

static void executors_answered(void *context)
{
    struct service *service = context;
    registry_take(service->line.registry);
    service->executors_answered = true;
    finish_start(service);
}

static void ledger_answered(void *context, bool up)
{
    struct service *service = context;
    (void)up;
    service->ledger_answered = true;
    finish_start(service);
}

/* The loop itself says that it is alive: a timer of somebody else would say so for a loop that hangs. */
static void feed_watchdog(void *context)
{
    struct service *service = context;
    notify_watchdog(&service->notify);
    deadline_start(&service->watchdog, service->notify.watchdog_ms / SERVICE_FEEDS);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void stop_runs(void *context)
{
    struct service *service = context;
    struct run *run, *next;
    for (run = TAILQ_FIRST(&service->line.runs); run; run = next) {
        next = TAILQ_NEXT(run, in_line);
        (void)run_stop(run, RUN_STOP_SHUTDOWN);
    }
}

static void flush_answers(void *context)
{
    struct service *service = context;
    bool flushed = !service->listener || listener_is_flushed(service->listener);
    if ((flushed && service->closed) || clock_monotonic_us() > service->flush_until_us)
        loop_stop(service->loop);
    else
        deadline_start(&service->flush, SERVICE_FLUSH_STEP_MS);
}

static void is_signed(void *context)
{
    struct service *service = context;
    service->closed = true;
}

static void is_settled(void *context)
{
    struct service *service = context;
    if (service->line.signer && !ledger_is_down(service->line.ledger))
        signer_sign(service->line.signer, is_signed, service);
    else
        is_signed(service);
}

/* The last run has been answered. What is read after this would have a row, but nobody to answer it. */
static void line_emptied(void *context)
{
    struct service *service = context;
    if (deadline_is_running(&service->flush))
        return;
    if (service->listener)
        listener_finish(service->listener);
    int64_t ms = SERVICE_FLUSH_MS + service->line.config->ledger_deadline_ms;
    service->flush_until_us = clock_monotonic_us() + ms * 1000;
    deadline_start(&service->flush, 0);
    chronicle_stopped(&service->line);
    ledger_settle(service->line.ledger, is_settled, service);
}

static void terminate(void *context)
{
    struct service *service = context;
    if (service->line.draining) {
        stop_runs(service);
        return;
    }
    log_info("ending: %zu runs on the line", run_count(&service->line, 0, RUN_STATE_COUNT));
    notify_stopping(&service->notify, "runs that are under way come to their end");
    service->line.draining = true;
    if (service->listener)
        listener_stop(service->listener);
    deadline_start(&service->drain, service->line.config->drain_timeout_ms);
    if (TAILQ_EMPTY(&service->line.runs))
        line_emptied(service);
}

static void dump(void *context)
{
    const struct service *service = context;
    const struct run *run;
    log_info("dump: %lld connections, ledger %s with %zu records to append",
             (long long)(service->listener ? listener_sessions(service->listener) : 0),
             ledger_is_down(service->line.ledger) ? "down" : "up",
             ledger_backlog(service->line.ledger));
    TAILQ_FOREACH(run, &service->line.runs, in_line)
        log_info("dump: run %s client=%s %s", run->id, run->client.name,
                 run_state_word(run->state));
}

static void is_taken(void *context)
{
    struct service *service = context;
    peer_check_host(service->line.config);
    listener_rematch(service->listener);
}

static void reload_is_over(void *context)
{
    struct service *service = context;
    notify_ready(&service->notify, "serving");
}

/* Before the daemon is ready, and when it ends, there is nothing to be reloaded. */
static void reload(void *context)
{
    struct service *service = context;
    if (!service->listener || service->line.draining)
        return;
    notify_reloading(&service->notify, "taking a changed configuration into force");
    reload_start(service->reload);
}

/* ---- the start -------------------------------------------------------------------------------- */

static int start_loop(struct service *service)
{
    static const struct loop_signals signals = {terminate, dump, reload};
    int rc = loop_open(&signals, service, &service->loop);
    if (rc == 0)
        rc = deadline_init(&service->drain, loop_base(service->loop), stop_runs, service);
    if (rc == 0)
        rc = deadline_init(&service->flush, loop_base(service->loop), flush_answers, service);
    if (rc == 0)
        rc = deadline_init(&service->watchdog, loop_base(service->loop), feed_watchdog, service);
    if (rc == 0 && service->notify.watchdog_ms > 0)
        deadline_start(&service->watchdog, 0);
    return rc;
}

static int take_socket(struct service *service)
{
    const char *problem;
    int rc = activation_take(&service->inherited, &problem);
    if (rc > 0)
        log_error("the socket of the service manager is of no use: %s", problem);
    return rc;
}

static int start_line(struct service *service)
{
    int rc = run_line_init(&service->line, loop_base(service->loop), service->config);
    service->line.emptied = line_emptied;
    service->line.main = service;
    service->line.id_space = service->id_space;
    if (rc < 0)
        return rc;
    service->line.queue = queue_new(&service->line);
    return service->line.queue ? 0 : -ENOMEM;
}

static int start_journal(struct service *service)
{
    char message[JOURNAL_MESSAGE_BYTES];
    int rc = journal_open(&service->line, service->line.config->journal_directory,
                          &service->line.journal, message);
    if (rc > 0)
        log_error("%s", message);
    return rc;
}

static int start_switches(struct service *service)
{
    service->line.switches = switches_new(&service->line);
    return service->line.switches ? 0 : -ENOMEM;
}

static int start_ledger(struct service *service)
{
    struct sink *sink;
    int rc = sink_open(service->line.config->ledger_url, service->line.base, &sink);
    if (rc > 0)
        log_error("ledger.url is neither sqlite:PATH nor postgres:CONNECTION");
    if (rc != 0)
        return rc;
    return ledger_open(&service->line, sink, ledger_answered, service, &service->line.ledger);
}

static int start_signer(struct service *service)
{
    const struct config *config = service->line.config;
    char message[SIGNER_MESSAGE_BYTES];
    int rc = 0;
    if (config->checkpoint_key)
        rc = signer_open(&service->line, config->checkpoint_key, config->checkpoint_every_ms,
                         &service->line.signer, message);
    if (rc > 0)
        log_error("%s", message);
    if (rc == 0)
        chronicle_started(&service->line,
                          service->line.signer ? signer_key(service->line.signer) : NULL);
    return rc;
}

static int start_resolver(struct service *service)
{
    return resolver_new(service->line.base, &service->line.config->network,
                        &service->line.resolver);
}

static int start_executors(struct service *service)
{
    service->line.registry = registry_new(&service->line);
    if (!service->line.registry)
        return -ENOMEM;
    return registry_probe(service->line.registry, service->config, executors_answered, service);
}

static int start_reload(struct service *service)
{
    static const struct reload_events events = {is_taken, reload_is_over};
    return reload_new(&service->line, service->path, &events, service, &service->reload);
}

static int watch_clock(struct service *service)
{
    return clock_watch_new(&service->line, &service->clock_watch);
}

static int start_metrics(struct service *service)
{
    const char *where;
    int rc = metrics_server_open(&service->line, &service->metrics, &where);
    if (rc == 0 || rc == -ENOMEM)
        return rc;
    log_error("cannot serve metrics on %s: %s", where, strerror(-rc));
    return 1;
}

static int become_subreaper(struct service *service)
{
    (void)service;
    return spawn_become_subreaper();
}

/* Not everybody may; who may not runs as well, but is not the last to be killed. */
static int protect_daemon(struct service *service)
{
    (void)service;
    if (!spawn_protect_daemon())
        log_info("the kernel is not asked to spare the daemon when memory is short: that needs "
                 "CAP_SYS_RESOURCE");
    return 0;
}

static int guard_secrets(struct service *service)
{
    return secrets_guard(&service->config->secrets);
}

static int check_peers(struct service *service)
{
    peer_check_host(service->config);
    return 0;
}

int service_start(const struct config *config, const char *path, int id_space, struct service **out)
{
    static int (*const steps[])(struct service *) = {
        guard_secrets,    check_peers,    take_socket,  start_loop,
        become_subreaper, protect_daemon, start_line,   start_journal,
        start_switches,   start_ledger,   start_signer, start_resolver,
        start_executors,  start_reload,   watch_clock,  start_metrics};
    struct service *service = calloc(1, sizeof *service);
    if (!service)
        return -ENOMEM;
    service->config = config;
    service->path = path;
    service->id_space = id_space;
    service->inherited = -1;
    notify_init(&service->notify);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < AR_COUNT(steps); i++)
        rc = steps[i](service);
    if (rc != 0)
        service_free(service);
    else
        *out = service;
    return rc;
}

int service_run(struct service *service)
{
    int rc = loop_run(service->loop);
    return rc < 0 || service->failed ? 1 : 0;
}

void service_free(struct service *service)
{
    if (!service)
        return;
    metrics_server_free(service->metrics);
    clock_watch_free(service->clock_watch);
    reload_free(service->reload);
    listener_free(service->listener);
    recovery_free(service->recovery);
    if (service->line.bury)
        run_line_bury(&service->line);
    registry_free(service->line.registry);
    resolver_free(service->line.resolver);
    signer_free(service->line.signer);
    ledger_free(service->line.ledger);
    journal_free(service->line.journal);
    queue_free(service->line.queue);
    switches_free(service->line.switches);
    run_line_free(&service->line);
    deadline_free(&service->drain);
    deadline_free(&service->flush);
    deadline_free(&service->watchdog);
    base_close(&service->inherited);
    loop_free(service->loop);
    free(service);
}

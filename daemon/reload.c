/*
 * reload.c - takes a changed configuration into force while the daemon runs.
 *
 * Everything but reading the file happens in the loop.
 */
#include "daemon/reload.h"

#include "daemon/chronicle.h"
#include "daemon/config.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/queue.h"
#include "daemon/registry.h"
#include "daemon/secrets.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

struct reload {
    struct line *line;
    const char *path;
    const struct reload_events *events;
    void *context;
    bool busy, again;
    pthread_t thread;
    bool thread_runs;
    int eventfd; /* the thread is through */
    struct event *event;
    /* The thread's, until it is through. */
    const struct config *coming;
    int rc;
    char message[CONFIG_MESSAGE_BYTES];
};

/* ---- the thread ------------------------------------------------------------------------------- */

static void *read_file(void *context)
{
    struct reload *reload = context;
    uint64_t one = 1;
    reload->rc = config_load(reload->path, &reload->coming, reload->message);
    if (write(reload->eventfd, &one, sizeof one) != (ssize_t)sizeof one)
        log_fatal("the thread that reads the configuration cannot wake the loop");
    return NULL;
}

static int start_thread(struct reload *reload)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    int rc = pthread_create(&reload->thread, NULL, read_file, reload);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    reload->thread_runs = rc == 0;
    return -rc;
}

static void join_thread(struct reload *reload)
{
    if (reload->thread_runs)
        (void)pthread_join(reload->thread, NULL);
    reload->thread_runs = false;
}

/* ---- the loop --------------------------------------------------------------------------------- */

static void finish(struct reload *reload, bool taken)
{
    chronicle_reloaded(reload->line, taken);
    metrics_count_reload(reload->line, taken);
    config_release(AR_TAKE(reload->coming));
    reload->busy = false;
    reload->events->over(reload->context);
    if (reload->again && !reload->line->draining)
        reload_start(reload);
}

static void tell_fixed(const struct config *old, const struct config *coming)
{
    const char *section, *key;
    size_t i = 0;
    while (config_next_fixed(old, coming, &i, &section, &key))
        log_warning("[%s] %s has changed, and takes effect at the next start only", section, key);
}

/* The executors have been proved under the new configuration: from here on it is the one in force. */
static void take(void *context)
{
    struct reload *reload = context;
    struct line *line = reload->line;
    const struct config *old = line->config;
    tell_fixed(old, reload->coming);
    line->config = AR_TAKE(reload->coming);
    log_set_level((enum log_level)line->config->log_level);
    registry_take(line->registry);
    reload->events->taken(reload->context);
    config_release(old);
    queue_withdraw(line->queue);
    queue_resume(line->queue);
    log_info("reloaded: configuration %.12s is in force", line->config->sha256);
    finish(reload, true);
}

static void refuse(struct reload *reload, const char *why)
{
    log_error("not reloaded, the configuration in force stays: %s", why);
    finish(reload, false);
}

static void file_is_read(evutil_socket_t fd, short what, void *context)
{
    struct reload *reload = context;
    uint64_t count;
    (void)what;
    if (read(fd, &count, sizeof count) < 0 && errno == EAGAIN)
        return;
    join_thread(reload);
    int rc = reload->rc;
    if (rc == 0)
        rc = secrets_guard(&reload->coming->secrets);
    if (rc == 0)
        rc = registry_probe(reload->line->registry, reload->coming, take, reload);
    if (rc != 0)
        refuse(reload, rc > 0 ? reload->message : strerror(-rc));
}

void reload_start(struct reload *reload)
{
    reload->again = reload->busy;
    if (reload->busy)
        return;
    reload->busy = true;
    int rc = start_thread(reload);
    if (rc < 0)
        refuse(reload, strerror(-rc));
}

int reload_new(struct line *line, const char *path, const struct reload_events *events,
               void *context, struct reload **out)
{
    struct reload *reload = calloc(1, sizeof *reload);
    if (!reload)
        return -ENOMEM;
    *reload = (struct reload){.line = line, .path = path, .events = events, .context = context};
    reload->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = reload->eventfd < 0 ? -errno : 0;
    if (rc == 0)
        reload->event =
            event_new(line->base, reload->eventfd, EV_READ | EV_PERSIST, file_is_read, reload);
    if (rc == 0 && (!reload->event || event_add(reload->event, NULL) != 0))
        rc = -ENOMEM;
    if (rc < 0)
        reload_free(reload);
    else
        *out = reload;
    return rc;
}

void reload_free(struct reload *reload)
{
    if (!reload)
        return;
    join_thread(reload);
    if (reload->event)
        event_free(reload->event);
    base_close(&reload->eventfd);
    config_release(reload->coming);
    free(reload);
}

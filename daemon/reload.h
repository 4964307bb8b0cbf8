/*
 * reload.h - takes a changed configuration into force while the daemon runs.
 *
 * The file is read and checked by a thread (names of users may have to be asked for), the executors are
 * proved under it beside those that are in force, and then all of it takes effect in one moment. Runs that
 * were received before keep the configuration that they came under, save that nothing starts any more that
 * is switched off now. A file that is wrong changes nothing.
 * Either way the log and the ledger's chain say so.
 */
#ifndef AUDITRUN_DAEMON_RELOAD_H
#define AUDITRUN_DAEMON_RELOAD_H

#include "daemon/run.h"

struct reload;

struct reload_events {
    void (*taken)(void *context); /* line->config is the new one */
    void (*over)(void *context);  /* after that, or when the old one stays */
};

/* The path is borrowed. 0 with *out owned, or -errno. */
int reload_new(struct line *line, const char *path, const struct reload_events *events,
               void *context, struct reload **out) AR_MUST_CHECK;
/* Begins, or, when one is under way, sees to it that the file is read once more after it. */
void reload_start(struct reload *reload);
/* Waits for the thread, if it is reading. */
void reload_free(struct reload *reload);

#endif

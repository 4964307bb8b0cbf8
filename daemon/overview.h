/*
 * overview.h - what runs and what has just ended, for `top`.
 *
 * What clients have said of their runs (company, actor, language) is shown to those who may speak for the
 * company, and to nobody else.
 */
#ifndef AUDITRUN_DAEMON_OVERVIEW_H
#define AUDITRUN_DAEMON_OVERVIEW_H

#include "daemon/run.h"

#define OVERVIEW_MAX_RUNNING 256
#define OVERVIEW_MAX_RECENT  32 /* of all companies together are remembered */

struct config_client;
struct overview;

/* NULL when out of memory. */
struct overview *overview_new(void) AR_MUST_CHECK;
void overview_free(struct overview *overview);

/* The run is about to be answered. */
void overview_note(struct overview *overview, const struct run *run);

/* {"running": [...], "more": N, "recent": [...]} of what this client may see: runs that have not been
 * answered, the oldest first, and N more of them; those that ended last first. NULL when out of
 * memory. */
json_t *overview_make(const struct line *line, const struct config_client *policy) AR_MUST_CHECK;

#endif

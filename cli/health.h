/*
 * health.h - the daemon's answer to `status` for a person: what is well, and what is not in another
 * color.
 */
#ifndef AUDITRUN_CLI_HEALTH_H
#define AUDITRUN_CLI_HEALTH_H

#include "cli/terminal.h"
#include "protocol/json.h"

/* All of it, one line a subject. A member that is not there is left out. */
void health_show(const struct terminal *terminal, const json_t *status);
/* The same in two lines, for the head of a screen. */
void health_show_short(const struct terminal *terminal, const json_t *status);

#endif

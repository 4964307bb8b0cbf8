/*
 * activity.h - the daemon's answer to `top` for a person: a table of what runs, and one of what has
 * ended.
 */
#ifndef AUDITRUN_CLI_ACTIVITY_H
#define AUDITRUN_CLI_ACTIVITY_H

#include "cli/terminal.h"
#include "protocol/json.h"

/* Prints at most so many runs of each list. 0 or -ENOMEM. */
int activity_show(const struct terminal *terminal, const json_t *top, size_t most_running,
                  size_t most_recent) AR_MUST_CHECK;

#endif

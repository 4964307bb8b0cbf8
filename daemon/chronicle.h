/*
 * chronicle.h - what the daemon writes into the chain about itself: one function an event, so that
 * the details of each kind are said in one place (docs/ledger.md lists them).
 */
#ifndef AUDITRUN_DAEMON_CHRONICLE_H
#define AUDITRUN_DAEMON_CHRONICLE_H

#include "daemon/run.h"
#include "protocol/switch.h"

struct checkpoint_key;

/* {"version", "config_sha256", "host", "key_id", "public_key"}: which program, with which
 * configuration file, on which machine; the last two are null when checkpoints are not signed. */
void chronicle_started(struct line *line, const struct checkpoint_key *key);
/* {"taken", "config_sha256"}: whether the changed file took effect, and which is in force now. */
void chronicle_reloaded(struct line *line, bool taken);
/* {"off", "scope", "name", "why", "client", "uid", "pid", "stopped"}: a switch was thrown, by whom, and how
 * many runs were cancelled with it. */
void chronicle_switched(struct line *line, const struct switch_order *order, bool off,
                        const struct peer_client *client, size_t stopped);
/* {"step_ms"}: the clock on the wall was set by so much. */
void chronicle_clock_stepped(struct line *line, int64_t step_ms);
/* {"runs"}: how many this daemon has taken. */
void chronicle_stopped(struct line *line);
/* {"name", "version", "envelope_sha256", "envelope"}: what runs are compared with from now on. */
void chronicle_executor(struct line *line, const struct envelope *envelope);

#endif

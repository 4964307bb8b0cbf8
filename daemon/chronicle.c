/*
 * chronicle.c - see chronicle.h.
 */
#include "daemon/chronicle.h"

#include "build_config.h"
#include "daemon/config.h"
#include "daemon/ledger.h"
#include "protocol/checkpoint.h"
#include "protocol/text.h"

#include <string.h>
#include <sys/utsname.h>

/* The machine's name, if it is one that a record may hold. */
static const char *host_name(struct utsname *names)
{
    return uname(names) == 0 && text_is_utf8(names->nodename, strlen(names->nodename)) &&
                   !text_has_control(names->nodename, strlen(names->nodename))
               ? names->nodename
               : "";
}

void chronicle_started(struct line *line, const struct checkpoint_key *key)
{
    struct utsname names;
    char public_key[2 * CHECKPOINT_KEY_BYTES + 1];
    if (key)
        text_to_hex(checkpoint_key_public(key), CHECKPOINT_KEY_BYTES, public_key);
    ledger_note(line->ledger, EVENT_STARTED,
                json_pack("{s:s, s:s, s:s, s:s?, s:s?}", "version", AR_VERSION, "config_sha256",
                          line->config->sha256, "host", host_name(&names), "key_id",
                          key ? checkpoint_key_id(key) : NULL, "public_key",
                          key ? public_key : NULL));
}

void chronicle_reloaded(struct line *line, bool taken)
{
    ledger_note(line->ledger, EVENT_RELOADED,
                json_pack("{s:b, s:s}", "taken", taken, "config_sha256", line->config->sha256));
}

void chronicle_switched(struct line *line, const struct switch_order *order, bool off,
                        const struct peer_client *client, size_t stopped)
{
    ledger_note(line->ledger, EVENT_SWITCHED,
                json_pack("{s:b, s:s, s:o, s:s, s:s, s:I, s:I, s:I}", "off", off, "scope",
                          switch_scope_word(order->key.scope), "name", switch_key_name(&order->key),
                          "why", order->why, "client", client->name, "uid", (json_int_t)client->uid,
                          "pid", (json_int_t)client->pid, "stopped", (json_int_t)stopped));
}

void chronicle_clock_stepped(struct line *line, int64_t step_ms)
{
    ledger_note(line->ledger, EVENT_CLOCK_STEPPED,
                json_pack("{s:I}", "step_ms", (json_int_t)step_ms));
}

void chronicle_stopped(struct line *line)
{
    ledger_note(line->ledger, EVENT_STOPPED, json_pack("{s:I}", "runs", (json_int_t)line->total));
}

void chronicle_executor(struct line *line, const struct envelope *envelope)
{
    ledger_note(line->ledger, EVENT_EXECUTOR_REGISTERED,
                json_pack("{s:s, s:s, s:s, s:o}", "name", envelope->name, "version",
                          envelope->version, "envelope_sha256", envelope->sha256, "envelope",
                          envelope_to_json(envelope)));
}

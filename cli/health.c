/*
 * health.c - see health.h. Numbers are rounded for the eye; --json has them as they are.
 */
#include "cli/health.h"

#include "cli/show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

static int64_t number_of(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

static const char *duration_of(const json_t *object, const char *member, int64_t factor,
                               char out[SHOW_TEXT_BYTES])
{
    int64_t us;
    return show_duration(base_mul(number_of(object, member), factor, &us) ? us : -1, out);
}

static void say(const struct terminal *terminal, const char *label, enum terminal_style style,
                const char *format, ...) AR_PRINTF(4, 5);

static void say(const struct terminal *terminal, const char *label, enum terminal_style style,
                const char *format, ...)
{
    AR_AUTO_FREE char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    show_line(terminal, label, text ? text : "?", style);
}

/* ---- subjects ----------------------------------------------------------------------------------- */

static void show_daemon(const struct terminal *terminal, const json_t *status)
{
    char up[SHOW_TEXT_BYTES];
    say(terminal, "auditrund", TERMINAL_BOLD, "%s, protocol %" PRId64 ", up %s",
        text_of(status, "version"), number_of(status, "protocol"),
        duration_of(status, "uptime_ms", 1000, up));
    if (json_is_true(json_object_get(status, "draining")))
        show_line(terminal, "state", "draining: it ends, and takes no more runs", TERMINAL_WARN);
    else
        show_line(terminal, "state", "serving", TERMINAL_GOOD);
    show_line(terminal, "writer", text_of(status, "writer"), TERMINAL_PLAIN);
}

static void show_runs(const struct terminal *terminal, const json_t *runs)
{
    if (runs)
        say(terminal, "runs", TERMINAL_PLAIN,
            "%" PRId64 " running, %" PRId64 " queued, %" PRId64 " since the start",
            number_of(runs, "running"), number_of(runs, "queued"), number_of(runs, "total"));
}

static bool is_ready(const json_t *executor)
{
    return strcmp(text_of(executor, "state"), "ready") == 0;
}

static void show_executors(const struct terminal *terminal, const json_t *executors)
{
    if (json_array_size(executors) == 0)
        show_line(terminal, "executors", "none: nothing can run", TERMINAL_BAD);
    for (size_t i = 0; i < json_array_size(executors); i++) {
        const json_t *executor = json_array_get(executors, i);
        const char *label = i == 0 ? "executors" : "";
        if (is_ready(executor))
            say(terminal, label, TERMINAL_PLAIN, "%s: ready, %" PRId64 " busy, %" PRId64 " idle",
                text_of(executor, "name"), number_of(executor, "slots_busy"),
                number_of(executor, "slots_idle"));
        else
            say(terminal, label, TERMINAL_BAD,
                "%s: unusable; it proved nothing when it was tried, the log says why",
                text_of(executor, "name"));
    }
}

/* How many rows wait, and for how long; "" when none does. */
static const char *waiting_text(const json_t *ledger, char *out, size_t room)
{
    char age[SHOW_TEXT_BYTES];
    int64_t backlog = number_of(ledger, "backlog");
    out[0] = '\0';
    if (backlog > 0)
        (void)snprintf(out, room, "; %" PRId64 " row%s wait%s, the oldest for %s", backlog,
                       backlog == 1 ? "" : "s", backlog == 1 ? "s" : "",
                       duration_of(ledger, "oldest_ms", 1000, age));
    return out;
}

static void show_ledger(const struct terminal *terminal, const json_t *ledger)
{
    char waiting[128];
    const char *state = text_of(ledger, "state"), *problem = text_of(ledger, "problem");
    bool up = strcmp(state, "up") == 0;
    if (!ledger)
        return;
    (void)waiting_text(ledger, waiting, sizeof(waiting));
    if (up)
        say(terminal, "ledger", TERMINAL_GOOD,
            "%s: up, at %" PRId64 " (%" PRId64 " rows in %" PRId64 " batches since the start)%s",
            text_of(ledger, "sink"), number_of(ledger, "seq"), number_of(ledger, "rows"),
            number_of(ledger, "batches"), waiting);
    else
        say(terminal, "ledger", TERMINAL_BAD, "%s: %s%s%s%s%s", text_of(ledger, "sink"), state,
            *problem ? " (" : "", problem, *problem ? ")" : "", waiting);
}

static void show_journal(const struct terminal *terminal, const json_t *journal)
{
    char bytes[SHOW_TEXT_BYTES], most[SHOW_TEXT_BYTES], kept[SHOW_TEXT_BYTES + 64] = "nothing kept";
    char age[SHOW_TEXT_BYTES];
    bool full = json_is_true(json_object_get(journal, "full"));
    int64_t count = number_of(journal, "kept");
    if (!journal)
        return;
    if (count > 0)
        (void)snprintf(kept, sizeof(kept), "%" PRId64 " kept for the ledger, the oldest for %s",
                       count, duration_of(journal, "oldest_kept_ms", 1000, age));
    say(terminal, "journal",
        full    ? TERMINAL_BAD
        : count ? TERMINAL_WARN
                : TERMINAL_PLAIN,
        "%s of %s%s, %" PRId64 " open, %s", show_bytes(number_of(journal, "bytes"), bytes),
        show_bytes(number_of(journal, "max_bytes"), most), full ? ": full, runs are refused" : "",
        number_of(journal, "open_intents"), kept);
}

static void show_checkpoint(const struct terminal *terminal, const json_t *checkpoint)
{
    if (json_is_null(checkpoint))
        show_line(terminal, "checkpoint", "none are made: there is no [ledger] checkpoint_key",
                  TERMINAL_DIM);
    else if (checkpoint && number_of(checkpoint, "seq") == 0)
        show_line(terminal, "checkpoint", "none yet", TERMINAL_PLAIN);
    else if (checkpoint)
        say(terminal, "checkpoint", TERMINAL_PLAIN, "at %" PRId64 ", made %s, key %.16s",
            number_of(checkpoint, "seq"), text_of(checkpoint, "made_at"),
            text_of(checkpoint, "key_id"));
}

static void show_loop(const struct terminal *terminal, const json_t *loop)
{
    char worst[SHOW_TEXT_BYTES];
    int64_t late = number_of(loop, "late");
    if (loop)
        say(terminal, "loop", late ? TERMINAL_WARN : TERMINAL_PLAIN,
            "%" PRId64 " of %" PRId64 " pulses late, the worst by %s", late,
            number_of(loop, "samples"), duration_of(loop, "worst_us", 1, worst));
}

static void show_switches(const struct terminal *terminal, const json_t *off)
{
    if (json_integer_value(off) > 0)
        say(terminal, "switches", TERMINAL_WARN, "%" PRId64 " off: auditrun switches lists them",
            (int64_t)json_integer_value(off));
    else if (off)
        show_line(terminal, "switches", "none is off", TERMINAL_PLAIN);
}

void health_show(const struct terminal *terminal, const json_t *status)
{
    show_daemon(terminal, status);
    show_runs(terminal, json_object_get(status, "runs"));
    show_executors(terminal, json_object_get(status, "executors"));
    show_ledger(terminal, json_object_get(status, "ledger"));
    show_journal(terminal, json_object_get(status, "journal"));
    show_checkpoint(terminal, json_object_get(status, "checkpoint"));
    show_loop(terminal, json_object_get(status, "loop"));
    show_switches(terminal, json_object_get(status, "switches_off"));
}

/* ---- in short ----------------------------------------------------------------------------------- */

static int64_t sum_of(const json_t *executors, const char *member)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_array_size(executors); i++)
        sum += number_of(json_array_get(executors, i), member);
    return sum;
}

void health_show_short(const struct terminal *terminal, const json_t *status)
{
    char up[SHOW_TEXT_BYTES], worst[SHOW_TEXT_BYTES], waiting[128];
    const json_t *runs = json_object_get(status, "runs"), *loop = json_object_get(status, "loop");
    const json_t *ledger = json_object_get(status, "ledger");
    const json_t *executors = json_object_get(status, "executors");
    bool draining = json_is_true(json_object_get(status, "draining"));
    bool well = strcmp(text_of(ledger, "state"), "up") == 0;
    say(terminal, "runs", draining ? TERMINAL_WARN : TERMINAL_BOLD,
        "%" PRId64 " running, %" PRId64 " queued, %" PRId64 " in %s; slots %" PRId64
        " busy, %" PRId64 " idle%s",
        number_of(runs, "running"), number_of(runs, "queued"), number_of(runs, "total"),
        duration_of(status, "uptime_ms", 1000, up), sum_of(executors, "slots_busy"),
        sum_of(executors, "slots_idle"), draining ? "; draining" : "");
    say(terminal, "ledger", well ? TERMINAL_PLAIN : TERMINAL_BAD, "%s: %s%s; loop late by %s",
        text_of(ledger, "sink"), text_of(ledger, "state"),
        waiting_text(ledger, waiting, sizeof(waiting)), duration_of(loop, "worst_us", 1, worst));
}

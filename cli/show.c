/*
 * show.c - values in the form that a person reads.
 *
 * Everything that came from outside is escaped before it is printed. Rounding is for the eye only:
 * --json has the numbers.
 */
#include "cli/show.h"

#include <inttypes.h>
#include <string.h>

#define LABEL_COLUMNS 18

static const enum terminal_style status_styles[STATUS_COUNT] = {
    [STATUS_SUCCEEDED] = TERMINAL_GOOD,   [STATUS_FAILED] = TERMINAL_BAD,
    [STATUS_TIMED_OUT] = TERMINAL_WARN,   [STATUS_LIMIT_EXCEEDED] = TERMINAL_WARN,
    [STATUS_CANCELLED] = TERMINAL_WARN,   [STATUS_CAPABILITY_DENIED] = TERMINAL_BAD,
    [STATUS_UNAUTHORIZED] = TERMINAL_BAD, [STATUS_DISABLED] = TERMINAL_BAD,
    [STATUS_REFUSED] = TERMINAL_WARN,     [STATUS_PROVIDER_FAILED] = TERMINAL_BAD,
    [STATUS_INTERRUPTED] = TERMINAL_BAD,
};

enum terminal_style show_status_style(enum status status)
{
    return (unsigned)status < STATUS_COUNT ? status_styles[status] : TERMINAL_PLAIN;
}

/* "3 min 20 s", "24 h": two neighboring units, the smaller only if there is some of it. */
static void two_units(int64_t large, const char *large_unit, int64_t small, const char *small_unit,
                      char out[SHOW_TEXT_BYTES])
{
    if (small == 0)
        (void)snprintf(out, SHOW_TEXT_BYTES, "%" PRId64 " %s", large, large_unit);
    else
        (void)snprintf(out, SHOW_TEXT_BYTES, "%" PRId64 " %s %" PRId64 " %s", large, large_unit,
                       small, small_unit);
}

const char *show_duration(int64_t us, char out[SHOW_TEXT_BYTES])
{
    const int64_t second = 1000000, minute = 60 * second, hour = 60 * minute;
    if (us < 0)
        (void)snprintf(out, SHOW_TEXT_BYTES, "?");
    else if (us < 1000)
        (void)snprintf(out, SHOW_TEXT_BYTES, "%" PRId64 " us", us);
    else if (us < 10000)
        (void)snprintf(out, SHOW_TEXT_BYTES, "%.2g ms", (double)us / 1e3);
    else if (us < second)
        (void)snprintf(out, SHOW_TEXT_BYTES, "%" PRId64 " ms", us / 1000);
    else if (us < 2 * minute)
        (void)snprintf(out, SHOW_TEXT_BYTES, "%.4g s", (double)us / 1e6);
    else if (us < 2 * hour)
        two_units(us / minute, "min", us % minute / second, "s", out);
    else
        two_units(us / hour, "h", us % hour / minute, "min", out);
    return out;
}

const char *show_bytes(int64_t bytes, char out[SHOW_TEXT_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < AR_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    if (bytes < 0)
        (void)snprintf(out, SHOW_TEXT_BYTES, "?");
    else
        (void)snprintf(out, SHOW_TEXT_BYTES, "%.4g %s", value, units[unit]);
    return out;
}

const char *show_time(int64_t us, char out[SHOW_TEXT_BYTES])
{
    char text[ROW_TIME_BYTES];
    if (us == ROW_NULL) {
        (void)snprintf(out, SHOW_TEXT_BYTES, "-");
        return out;
    }
    row_time_text(us, text);
    (void)snprintf(out, SHOW_TEXT_BYTES, "%.10s %.12s", text, text + 11);
    return out;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static char *number_text(const char *name, int64_t number)
{
    char text[SHOW_TEXT_BYTES];
    if (ends_with(name, "_bytes"))
        (void)show_bytes(number, text);
    else if (ends_with(name, "_ms") && number <= INT64_MAX / 1000)
        (void)show_duration(number * 1000, text);
    else if (ends_with(name, "_us"))
        (void)show_duration(number, text);
    else
        (void)snprintf(text, sizeof(text), "%" PRId64, number);
    return strdup(text);
}

static char *list_text(const json_t *list)
{
    AR_AUTO_FREE char *joined = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&joined, &length);
    if (!stream)
        return NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        AR_AUTO_FREE char *item = show_value("", json_array_get(list, i));
        (void)fprintf(stream, "%s%s", i ? ", " : "", item ? item : "");
    }
    if (json_array_size(list) == 0)
        (void)fputs("nothing", stream);
    return fclose(stream) == 0 ? AR_TAKE(joined) : NULL;
}

/* A member's name as a label: "wall_ms" is "wall", because its value is shown with its unit. Escaped;
 * malloc'd, NULL when out of memory. */
static char *label_of(const char *name)
{
    static const char *const units[] = {"_ms", "_us", "_bytes"};
    size_t length = strlen(name);
    for (size_t i = 0; i < AR_COUNT(units); i++)
        if (ends_with(name, units[i]) && length > strlen(units[i])) {
            length -= strlen(units[i]);
            break;
        }
    char *label = terminal_escape(name, length);
    for (char *c = label; c && *c; c++)
        if (*c == '_')
            *c = ' ';
    return label;
}

/* "name value, name value" */
static char *object_text(const json_t *object)
{
    AR_AUTO_FREE char *joined = NULL;
    size_t length = 0;
    const char *name, *comma = "";
    json_t *value;
    FILE *stream = open_memstream(&joined, &length);
    if (!stream)
        return NULL;
    json_object_foreach((json_t *)object, name, value) {
        AR_AUTO_FREE char *label = label_of(name);
        AR_AUTO_FREE char *text = show_value(name, value);
        (void)fprintf(stream, "%s%s %s", comma, label ? label : "?", text ? text : "?");
        comma = ", ";
    }
    if (json_object_size(object) == 0)
        (void)fputs("nothing", stream);
    return fclose(stream) == 0 ? AR_TAKE(joined) : NULL;
}

char *show_value(const char *name, const json_t *value)
{
    if (json_is_string(value))
        return terminal_escape(json_string_value(value), json_string_length(value));
    if (json_is_integer(value))
        return number_text(name, json_integer_value(value));
    if (json_is_array(value))
        return list_text(value);
    if (json_is_boolean(value))
        return strdup(json_is_true(value) ? "yes" : "no");
    if (json_is_object(value))
        return object_text(value);
    if (!value || json_is_null(value))
        return strdup("nothing");
    AR_AUTO_FREE char *text = json_dumps(value, JSON_ENCODE_ANY);
    return text ? terminal_escape(text, strlen(text)) : NULL;
}

/* text is escaped already */
static void print_line(const struct terminal *terminal, int indent, const char *label,
                       const char *text, enum terminal_style style)
{
    if (*text == '\0') {
        (void)fprintf(terminal->stream, "%*s%s%s%s\n", indent, "",
                      terminal_begin(terminal, TERMINAL_DIM), label,
                      terminal_end(terminal, TERMINAL_DIM));
        return;
    }
    (void)fprintf(terminal->stream, "%*s%s%-*s%s %s%s%s\n", indent, "",
                  terminal_begin(terminal, TERMINAL_DIM), LABEL_COLUMNS - indent, label,
                  terminal_end(terminal, TERMINAL_DIM), terminal_begin(terminal, style), text,
                  terminal_end(terminal, style));
}

void show_line(const struct terminal *terminal, const char *label, const char *text,
               enum terminal_style style)
{
    AR_AUTO_FREE char *escaped = terminal_escape(text, strlen(text));
    print_line(terminal, 0, label, escaped ? escaped : "?", style);
}

/* A list of objects: one line each. */
static void show_list(const struct terminal *terminal, int indent, const char *label,
                      const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        AR_AUTO_FREE char *text = show_value("", json_array_get(list, i));
        print_line(terminal, indent, i == 0 ? label : "", text ? text : "?", TERMINAL_PLAIN);
    }
}

static void show_members(const struct terminal *terminal, int indent, const json_t *object)
{
    const char *name;
    json_t *value;
    /* so deep that labels have no room: one line is clearer */
    bool flat = indent >= 8;
    json_object_foreach((json_t *)object, name, value) {
        AR_AUTO_FREE char *label = label_of(name);
        if (json_is_object(value) && json_object_size(value) > 0 && !flat) {
            print_line(terminal, indent, label ? label : "?", "", TERMINAL_PLAIN);
            show_members(terminal, indent + 2, value);
            continue;
        }
        if (json_is_object(json_array_get(value, 0))) {
            show_list(terminal, indent, label ? label : "?", value);
            continue;
        }
        AR_AUTO_FREE char *text = show_value(name, value);
        print_line(terminal, indent, label ? label : "?", text ? text : "?", TERMINAL_PLAIN);
    }
}

void show_object(const struct terminal *terminal, const json_t *object)
{
    show_members(terminal, 0, object);
}

/* "network: requested open; offered: none", escaped; malloc'd, NULL when out of memory. */
static char *denial_text(const json_t *denial)
{
    char *text = NULL;
    const char *demand = json_string_value(json_object_get(denial, "demand"));
    if (!demand)
        demand = "?";
    AR_AUTO_FREE char *name = terminal_escape(demand, strlen(demand));
    AR_AUTO_FREE char *requested = show_value(demand, json_object_get(denial, "requested"));
    AR_AUTO_FREE char *offered = show_value(demand, json_object_get(denial, "offered"));
    if (!name || !requested || !offered ||
        asprintf(&text, "%s: requested %s; offered: %s", name, requested, offered) < 0)
        return NULL;
    return text;
}

void show_denials(const struct terminal *terminal, const json_t *denials)
{
    for (size_t i = 0; i < json_array_size(denials); i++) {
        AR_AUTO_FREE char *text = denial_text(json_array_get(denials, i));
        (void)fprintf(terminal->stream, "  %sdenied%s %s\n", terminal_begin(terminal, TERMINAL_BAD),
                      terminal_end(terminal, TERMINAL_BAD), text ? text : "?");
    }
}

static void show_status(const struct terminal *terminal, const struct record *record)
{
    char text[SHOW_TEXT_BYTES];
    show_line(terminal, "status", status_word(record->status), show_status_style(record->status));
    show_line(terminal, "reason", reason_word(record->reason), TERMINAL_PLAIN);
    if (record->exit_code != ROW_NULL) {
        (void)snprintf(text, sizeof(text), "%" PRId64, record->exit_code);
        show_line(terminal, "exit code", text, TERMINAL_PLAIN);
    }
    if (record->signal != ROW_NULL) {
        (void)snprintf(text, sizeof(text), "%" PRId64, record->signal);
        show_line(terminal, "signal", text, TERMINAL_PLAIN);
    }
}

static void show_who(const struct terminal *terminal, const struct record *record)
{
    AR_AUTO_FREE char *client = NULL;
    show_line(terminal, "company", record->company, TERMINAL_PLAIN);
    show_line(terminal, "actor", record->actor, TERMINAL_PLAIN);
    show_line(terminal, "purpose", record->purpose, TERMINAL_PLAIN);
    if (asprintf(&client, "%s (uid %" PRId64 ", gid %" PRId64 ", pid %" PRId64 ")",
                 record->client_name ? record->client_name : "", record->client_uid,
                 record->client_gid, record->client_pid) < 0)
        client = NULL;
    show_line(terminal, "client", client ? client : "?", TERMINAL_PLAIN);
}

static void show_what(const struct terminal *terminal, const struct record *record)
{
    char size[SHOW_TEXT_BYTES];
    AR_AUTO_FREE char *provider = NULL;
    show_line(terminal, "language", record->language, TERMINAL_PLAIN);
    show_line(terminal, "code sha256", record->code_sha256, TERMINAL_PLAIN);
    show_line(terminal, "code size", show_bytes(record->code_bytes, size), TERMINAL_PLAIN);
    if (record->provider && asprintf(&provider, "%s %s", record->provider,
                                     record->provider_version ? record->provider_version : "") < 0)
        provider = NULL;
    show_line(terminal, "provider", provider ? provider : "none", TERMINAL_PLAIN);
    if (record->envelope_sha256[0])
        show_line(terminal, "envelope sha256", record->envelope_sha256, TERMINAL_PLAIN);
    if (record->trace_id)
        show_line(terminal, "trace", record->trace_id, TERMINAL_PLAIN);
}

static void show_when(const struct terminal *terminal, const struct record *record)
{
    char text[SHOW_TEXT_BYTES];
    show_line(terminal, "received", show_time(record->received_at, text), TERMINAL_PLAIN);
    show_line(terminal, "started", show_time(record->started_at, text), TERMINAL_PLAIN);
    show_line(terminal, "finished", show_time(record->finished_at, text), TERMINAL_PLAIN);
    show_line(terminal, "recorded", show_time(record->recorded_at, text), TERMINAL_PLAIN);
    if (record->late)
        show_line(terminal, "late", "yes: appended after the ledger was back", TERMINAL_WARN);
}

/* A JSON column as indented lines under its label. */
static void show_column(const struct terminal *terminal, const char *label, const char *text)
{
    AR_AUTO_JSON json_t *value = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
    show_line(terminal, label, json_object_size(value) ? "" : "nothing", TERMINAL_PLAIN);
    show_members(terminal, 2, value);
}

static int show_chain(const struct terminal *terminal, const struct record *record)
{
    char seq[SHOW_TEXT_BYTES];
    int rc = record_check(record);
    if (rc < 0)
        return rc;
    (void)snprintf(seq, sizeof(seq), "%" PRId64, record->seq);
    show_line(terminal, "writer", record->writer, TERMINAL_PLAIN);
    show_line(terminal, "seq", seq, TERMINAL_PLAIN);
    show_line(terminal, "previous hash", record->prev_hash, TERMINAL_PLAIN);
    show_line(terminal, "hash", record->row_hash, TERMINAL_PLAIN);
    show_line(terminal, "hash is right", rc == 0 ? "yes" : "NO: the row was altered",
              rc == 0 ? TERMINAL_GOOD : TERMINAL_BAD);
    return 0;
}

int show_record(const struct terminal *terminal, const struct record *record)
{
    show_line(terminal, "run", record->run_id, TERMINAL_BOLD);
    show_status(terminal, record);
    show_who(terminal, record);
    show_what(terminal, record);
    show_when(terminal, record);
    show_column(terminal, "grant", record->grant);
    show_column(terminal, "usage", record->usage);
    AR_AUTO_JSON json_t *denials =
        record->denials ? json_loads(record->denials, JSON_DECODE_ANY, NULL) : NULL;
    for (size_t i = 0; i < json_array_size(denials); i++) {
        AR_AUTO_FREE char *text = denial_text(json_array_get(denials, i));
        print_line(terminal, 0, "denied", text ? text : "?", TERMINAL_BAD);
    }
    return show_chain(terminal, record);
}

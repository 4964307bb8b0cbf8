/*
 * exposition.c - see exposition.h.
 *
 * The two formats differ in how a family with a suffix is named (by OpenMetrics without it), in the type
 * "info", which only OpenMetrics has, and in the mark at the end. Bounds of buckets always have a
 * fraction, as OpenMetrics wants it and the other does not mind.
 */
#include "daemon/exposition.h"

#include <event2/buffer.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(struct exposition *exposition, const char *format, ...) AR_PRINTF(2, 3);

static void put(struct exposition *exposition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (evbuffer_add_vprintf(exposition->out, format, arguments) < 0)
        exposition->failed = true;
    va_end(arguments);
}

const char *exposition_suffix(enum exposition_type type)
{
    static const char *const suffixes[] = {[EXPOSITION_COUNTER] = "_total",
                                           [EXPOSITION_GAUGE] = "",
                                           [EXPOSITION_INFO] = "_info",
                                           [EXPOSITION_HISTOGRAM] = ""};
    return suffixes[type];
}

static const char *type_word(const struct exposition *exposition)
{
    static const char *const words[] = {[EXPOSITION_COUNTER] = "counter",
                                        [EXPOSITION_GAUGE] = "gauge",
                                        [EXPOSITION_INFO] = "info",
                                        [EXPOSITION_HISTOGRAM] = "histogram"};
    if (exposition->type == EXPOSITION_INFO && !exposition->open_metrics)
        return "gauge";
    return words[exposition->type];
}

void exposition_family(struct exposition *exposition, const char *name, enum exposition_type type,
                       const char *help)
{
    exposition->name = name;
    exposition->type = type;
    const char *suffix = exposition->open_metrics ? "" : exposition_suffix(type);
    put(exposition, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
        type_word(exposition));
}

static void put_escaped(struct exposition *exposition, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "\n\"\\");
        put(exposition, "%.*s", (int)plain, text);
        text += plain;
        if (*text)
            put(exposition, "\\%c", *text == '\n' ? 'n' : *text);
        text += *text != '\0';
    }
}

static void put_labels(struct exposition *exposition, const struct exposition_label *labels,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put(exposition, "%s%s=\"", i ? "," : "{", labels[i].name);
        put_escaped(exposition, labels[i].value);
        put(exposition, "\"");
    }
    put(exposition, "%s", count ? "} " : " ");
}

/* With a fraction of one digit at least, and no more than it needs. */
static void decimal(int64_t value, bool times, char *out, size_t room)
{
    int64_t whole = times ? value / 1000000 : value;
    long long fraction = times ? value % 1000000 : 0;
    size_t length = (size_t)snprintf(out, room, "%lld.%06lld", (long long)whole, fraction);
    while (out[length - 1] == '0' && out[length - 2] != '.')
        out[--length] = '\0';
}

static void put_value(struct exposition *exposition, int64_t value, bool times)
{
    char text[40];
    if (times) {
        decimal(value, true, text, sizeof text);
        put(exposition, "%s\n", text);
    } else {
        put(exposition, "%lld\n", (long long)value);
    }
}

static void put_sample(struct exposition *exposition, const char *suffix,
                       const struct exposition_label *labels, size_t count, int64_t value,
                       bool times)
{
    put(exposition, "%s%s", exposition->name, suffix);
    put_labels(exposition, labels, count);
    put_value(exposition, value, times);
}

void exposition_number(struct exposition *exposition, const struct exposition_label *labels,
                       size_t count, int64_t value)
{
    put_sample(exposition, exposition_suffix(exposition->type), labels, count, value, false);
}

void exposition_time(struct exposition *exposition, const struct exposition_label *labels,
                     size_t count, int64_t value_us)
{
    put_sample(exposition, exposition_suffix(exposition->type), labels, count,
               value_us > 0 ? value_us : 0, true);
}

void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
                          size_t count, const struct histogram *histogram, bool times)
{
    const struct histogram_scale *scale = histogram->scale;
    struct exposition_label all[EXPOSITION_MAX_LABELS];
    char bound[40];
    int64_t below = 0;
    if (count >= EXPOSITION_MAX_LABELS)
        return;
    if (count > 0)
        memcpy(all, labels, count * sizeof *labels);
    all[count] = (struct exposition_label){"le", bound};
    for (size_t i = 0; i < scale->count; i++) {
        below += histogram->counts[i];
        decimal(scale->bounds[i], times, bound, sizeof bound);
        put_sample(exposition, "_bucket", all, count + 1, below, false);
    }
    all[count].value = "+Inf";
    put_sample(exposition, "_bucket", all, count + 1, histogram_count(histogram), false);
    put_sample(exposition, "_sum", labels, count, histogram->sum, times);
    put_sample(exposition, "_count", labels, count, histogram_count(histogram), false);
}

int exposition_end(struct exposition *exposition)
{
    if (exposition->open_metrics)
        put(exposition, "# EOF\n");
    return exposition->failed ? -ENOMEM : 0;
}

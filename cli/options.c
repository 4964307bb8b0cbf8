/*
 * options.c - the command line of a verb as a table, and the forms of values with units.
 *
 * Numbers are read digit by digit with checked arithmetic: "1.5G" is exact or it is refused, and
 * nothing depends on the locale. getopt_long keeps its state in globals of the C library, so it is
 * reset before each parse (optind = 0); nothing else here has state.
 */
#include "cli/options.h"

#include "cli/message.h"
#include "protocol/record.h"

#include <getopt.h>
#include <string.h>
#include <time.h>

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"k", INT64_C(1) << 10},
    {"K", INT64_C(1) << 10},
    {"M", INT64_C(1) << 20},
    {"G", INT64_C(1) << 30},
    {"T", INT64_C(1) << 40},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
};

static const struct unit duration_units[] = {
    {"ms", 1},
    {"s", 1000},
    {"sec", 1000},
    {"m", INT64_C(60) * 1000},
    {"min", INT64_C(60) * 1000},
    {"h", INT64_C(3600) * 1000},
    {"d", INT64_C(86400) * 1000},
};

/* Appends digits to *value and counts them; false on overflow. */
static bool take_digits(const char **text, int64_t *value, int *digits)
{
    for (*digits = 0; **text >= '0' && **text <= '9'; (*text)++, (*digits)++) {
        if (!base_mul(*value, 10, value) || !base_add(*value, **text - '0', value))
            return false;
    }
    return true;
}

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    return NULL;
}

/* DIGITS[.DIGITS]UNIT, exact. */
static int with_unit(const char *text, const struct unit *units, size_t count, int64_t *out)
{
    int64_t value = 0, divisor = 1;
    int digits = 0, decimals = 0;
    if (!take_digits(&text, &value, &digits) || digits == 0)
        return 1;
    if (*text == '.') {
        text++;
        if (!take_digits(&text, &value, &decimals) || decimals == 0)
            return 1;
    }
    const struct unit *unit = find_unit(units, count, text);
    if (!unit || !base_mul(value, unit->factor, &value))
        return 1;
    for (int i = 0; i < decimals; i++)
        if (!base_mul(divisor, 10, &divisor))
            return 1;
    if (value % divisor != 0)
        return 1;
    *out = value / divisor;
    return 0;
}

int options_size(const char *text, int64_t *bytes)
{
    return with_unit(text, size_units, AR_COUNT(size_units), bytes);
}

int options_duration(const char *text, int64_t *ms)
{
    if (strcmp(text, "0") == 0) {
        *ms = 0;
        return 0;
    }
    return with_unit(text, duration_units, AR_COUNT(duration_units), ms);
}

/* A calendar time in UTC in one of the usual forms; strptime() lets February 30 through. */
static bool calendar_time(const char *text, int64_t *us)
{
    static const char *const forms[] = {
        "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%MZ",
        "%Y-%m-%dT%H:%M",     "%Y-%m-%d %H:%M",    "%Y-%m-%d"};
    for (size_t i = 0; i < AR_COUNT(forms); i++) {
        struct tm broken = {0};
        const char *end = strptime(text, forms[i], &broken);
        if (!end || *end)
            continue;
        struct tm normal = broken;
        int64_t seconds = timegm(&normal);
        if (normal.tm_mday != broken.tm_mday || normal.tm_mon != broken.tm_mon)
            return false;
        return base_mul(seconds, INT64_C(1000000), us);
    }
    return false;
}

int options_time(const char *text, int64_t now_us, int64_t *us)
{
    int64_t ago_ms = 0, ago_us = 0;
    if (options_duration(text, &ago_ms) == 0)
        return base_mul(ago_ms, INT64_C(1000), &ago_us) && base_sub(now_us, ago_us, us) ? 0 : 1;
    if (text[0] < '0' || text[0] > '9')
        return 1;
    if (row_time_parse(text, us) || calendar_time(text, us))
        return 0;
    return 1;
}

static int count_value(const char *text, int64_t *count)
{
    int64_t value = 0;
    int digits = 0;
    if (!take_digits(&text, &value, &digits) || digits == 0 || *text)
        return 1;
    *count = value;
    return 0;
}

static const char *form_of(enum option_kind kind)
{
    switch (kind) {
    case OPTION_COUNT:
        return "a whole number";
    case OPTION_SIZE:
        return "a size like 4096, 64K, 16M or 1.5G";
    case OPTION_DURATION:
        return "a time with its unit, like 250ms, 5s, 2m or 1h";
    case OPTION_TIME:
        return "a time like 2026-01-31, 2026-01-31T12:00:00Z, or 2h (ago)";
    case OPTION_FLAG:
    case OPTION_TEXT:
    case OPTION_LIST:
        break;
    }
    return "a text";
}

/* 0; 1: not of its form; -ENOMEM. */
static int store(const struct option_row *row, const char *text, void *target, int64_t now_us)
{
    void *place = (char *)target + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)place = true;
        return 0;
    case OPTION_TEXT:
        *(const char **)place = text;
        return 0;
    case OPTION_LIST:
        return text_list_add(place, text);
    case OPTION_COUNT:
        return count_value(text, place);
    case OPTION_SIZE:
        return options_size(text, place);
    case OPTION_DURATION:
        return options_duration(text, place);
    case OPTION_TIME:
        return options_time(text, now_us, place);
    }
    return 1;
}

enum { CODE_OPERAND = 1, CODE_FIRST_ROW = 256 };

static void make_table(const struct option_row *rows, size_t count, struct option *table)
{
    for (size_t i = 0; i < count; i++)
        table[i] = (struct option){rows[i].name,
                                   rows[i].kind == OPTION_FLAG ? no_argument : required_argument,
                                   NULL, CODE_FIRST_ROW + (int)i};
    table[count] = (struct option){"help", no_argument, NULL, 'h'};
    table[count + 1] = (struct option){NULL, 0, NULL, 0};
}

/* getopt_long has printed what is wrong, under the name argv[0]. */
static int unknown_option(const char *verb)
{
    (void)fprintf(stderr, "Try '%s --help'.\n", verb);
    return OPTIONS_USAGE;
}

static int take_row(const char *verb, const struct option_row *row, void *target, int64_t now_us)
{
    int rc = store(row, optarg, target, now_us);
    if (rc <= 0)
        return rc;
    (void)message_usage(verb, "--%s takes %s", row->name, form_of(row->kind));
    return OPTIONS_USAGE;
}

int options_parse(int argc, char **argv, const struct option_row *rows, size_t count, void *target,
                  int64_t now_us, struct options_rest *rest)
{
    struct option table[OPTIONS_MAX_ROWS + 2];
    int rc = 0;
    if (count > OPTIONS_MAX_ROWS)
        return -E2BIG;
    make_table(rows, count, table);
    optind = 0;
    while (rc == 0) {
        /* "-": operands come in their place, so that those behind "--" can be told apart */
        int code = getopt_long(argc, argv, "-h", table, NULL);
        if (code == -1)
            break;
        if (code == 'h')
            rc = OPTIONS_HELP;
        else if (code == CODE_OPERAND)
            rc = text_list_add(&rest->operands, optarg);
        else if (code >= CODE_FIRST_ROW && (size_t)(code - CODE_FIRST_ROW) < count)
            rc = take_row(argv[0], &rows[code - CODE_FIRST_ROW], target, now_us);
        else
            rc = unknown_option(argv[0]);
    }
    for (int i = optind; rc == 0 && i < argc; i++)
        rc = text_list_add(&rest->behind, argv[i]);
    return rc;
}

void options_free(const struct option_row *rows, size_t count, void *target)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].kind == OPTION_LIST)
            text_list_free((struct text_list *)(void *)((char *)target + rows[i].offset));
}

void options_rest_free(struct options_rest *rest)
{
    text_list_free(&rest->operands);
    text_list_free(&rest->behind);
}

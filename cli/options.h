/*
 * options.h - the command line of a verb as a table, and the forms of values with units.
 *
 * A verb lists its options as rows (name, kind, place in its struct); options_parse() does the rest
 * with getopt_long: abbreviations, "--name=value", "--" before what belongs to somebody else.
 * Strings borrow from argv. A number that was not given stays as the verb set it.
 */
#ifndef AUDITRUN_CLI_OPTIONS_H
#define AUDITRUN_CLI_OPTIONS_H

#include "protocol/text.h"

#define OPTIONS_UNSET INT64_C(-1) /* of numbers: not given */

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char * */
    OPTION_LIST,     /* struct text_list, may be repeated */
    OPTION_COUNT,    /* int64_t, a whole number >= 0 */
    OPTION_SIZE,     /* int64_t, bytes: 4096, 64K, 16M, 1.5G */
    OPTION_DURATION, /* int64_t, ms: 250ms, 5s, 2m, 1h, 1d */
    OPTION_TIME      /* int64_t, us since the epoch: 2026-01-31, 2026-01-31T12:00:00Z, 2h (ago) */
};

struct option_row {
    const char *name;
    enum option_kind kind;
    size_t offset; /* of the value in the verb's struct */
};

/* What is left: operands before "--", and everything behind it. */
struct options_rest {
    struct text_list operands;
    struct text_list behind;
};
void options_rest_free(struct options_rest *rest);

enum options_outcome {
    OPTIONS_OK = 0,
    OPTIONS_USAGE = 1, /* the complaint was printed */
    OPTIONS_HELP = 2   /* --help or -h */
};

#define OPTIONS_MAX_ROWS 48

/* argv[0] names the verb in messages. now_us: for times like "2h". An enum options_outcome or
 * -ENOMEM; lists in target and rest belong to the caller in every case. */
int options_parse(int argc, char **argv, const struct option_row *rows, size_t count, void *target,
                  int64_t now_us, struct options_rest *rest) AR_MUST_CHECK;

/* Frees the lists of target. */
void options_free(const struct option_row *rows, size_t count, void *target);

/* Values with units: 0, or 1 when the text is not of this form, too big, or not a whole number of
 * bytes or milliseconds. Sizes are powers of 1024 (K, M, G, T, also KiB, k); without unit: bytes.
 * Durations need their unit, save 0. */
int options_size(const char *text, int64_t *bytes) AR_MUST_CHECK;
int options_duration(const char *text, int64_t *ms) AR_MUST_CHECK;
/* A time in UTC, or a duration: so long before now_us. */
int options_time(const char *text, int64_t now_us, int64_t *us) AR_MUST_CHECK;

#endif

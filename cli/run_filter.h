/*
 * run_filter.h - which runs: the filters that the verbs over the runs of a ledger have in common.
 *
 * A prefix of a code hash is enough to find its runs: the store compares whole hashes only, so
 * prefixes are compared here.
 */
#ifndef AUDITRUN_CLI_RUN_FILTER_H
#define AUDITRUN_CLI_RUN_FILTER_H

#include "cli/options.h"
#include "sinks/reader.h"

struct run_filter {
    struct reader_filter filter;
    const char *code_hash; /* after the check: only a prefix, or NULL */
    int64_t limit;         /* OPTIONS_UNSET; 0: all */
};
#define RUN_FILTER_NONE                                                      \
    {                                                                        \
        .filter = {.since = ROW_NULL, .until = ROW_NULL, .limit = ROW_NULL}, \
        .limit = OPTIONS_UNSET                                               \
    }

/* The options: member is that of the verb's struct. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the argument is the name of a member */
#define RUN_FILTER_ROWS(type, member)                                  \
    {"company", OPTION_TEXT, offsetof(type, member.filter.company)},   \
        {"actor", OPTION_TEXT, offsetof(type, member.filter.actor)},   \
        {"status", OPTION_TEXT, offsetof(type, member.filter.status)}, \
        {"writer", OPTION_TEXT, offsetof(type, member.filter.writer)}, \
        {"since", OPTION_TIME, offsetof(type, member.filter.since)},   \
        {"until", OPTION_TIME, offsetof(type, member.filter.until)},   \
        {"code-hash", OPTION_TEXT, offsetof(type, member.code_hash)},  \
    {                                                                  \
        "limit", OPTION_COUNT, offsetof(type, member.limit)            \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
#define RUN_FILTER_HELP                                                                       \
    "  --company C          only runs for this company\n"                                     \
    "  --actor A            only runs that this actor asked for\n"                            \
    "  --status S           only runs that ended so (succeeded, failed, timed_out, ...)\n"    \
    "  --code-hash HEX      only runs of this code: its SHA-256, or the first digits of it\n" \
    "  --writer ID          only rows of this writer\n"                                       \
    "  --since TIME         only runs received at this time or later,\n"                      \
    "  --until TIME         and before this one: 2026-01-31, 2026-01-31T12:00:00Z, or 2h (ago)\n"

/* 0, or the exit code after the complaint. */
int run_filter_check(const char *title, struct run_filter *filter) AR_MUST_CHECK;

/* Has the record's code the prefix, if there is one? */
bool run_filter_matches(const struct run_filter *filter, const struct record *record);

#endif

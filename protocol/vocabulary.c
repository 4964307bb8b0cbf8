/*
 * vocabulary.c - one table a vocabulary, indexed by its enum.
 *
 * A missing word is a broken build: each table is as long as its enum, and the unit test walks all
 * of them. The first entry of a vocabulary with a *_NONE value is "" and is never found by word.
 */
#include "protocol/vocabulary.h"

#include <string.h>

static const char *const status_words[STATUS_COUNT] = {
    [STATUS_NONE] = "",
    [STATUS_SUCCEEDED] = "succeeded",
    [STATUS_FAILED] = "failed",
    [STATUS_TIMED_OUT] = "timed_out",
    [STATUS_LIMIT_EXCEEDED] = "limit_exceeded",
    [STATUS_CANCELLED] = "cancelled",
    [STATUS_CAPABILITY_DENIED] = "capability_denied",
    [STATUS_UNAUTHORIZED] = "unauthorized",
    [STATUS_DISABLED] = "disabled",
    [STATUS_REFUSED] = "refused",
    [STATUS_PROVIDER_FAILED] = "provider_failed",
    [STATUS_INTERRUPTED] = "interrupted",
};

static const struct {
    const char *word;
    enum status status;
} reasons[REASON_COUNT] = {
    [REASON_NONE] = {"", STATUS_NONE},
    [REASON_EXIT_ZERO] = {"exit_zero", STATUS_SUCCEEDED},
    [REASON_EXIT_NONZERO] = {"exit_nonzero", STATUS_FAILED},
    [REASON_KILLED_BY_SIGNAL] = {"killed_by_signal", STATUS_FAILED},
    [REASON_COMPILE_FAILED] = {"compile_failed", STATUS_FAILED},
    [REASON_WALL_CLOCK] = {"wall_clock", STATUS_TIMED_OUT},
    [REASON_CPU] = {"cpu", STATUS_LIMIT_EXCEEDED},
    [REASON_MEMORY] = {"memory", STATUS_LIMIT_EXCEEDED},
    [REASON_PROCESSES] = {"processes", STATUS_LIMIT_EXCEEDED},
    [REASON_OUTPUT] = {"output", STATUS_LIMIT_EXCEEDED},
    [REASON_SCRATCH] = {"scratch", STATUS_LIMIT_EXCEEDED},
    [REASON_CLIENT_CANCELLED] = {"client_cancelled", STATUS_CANCELLED},
    [REASON_CLIENT_GONE] = {"client_gone", STATUS_CANCELLED},
    [REASON_SHUTDOWN] = {"shutdown", STATUS_CANCELLED},
    [REASON_NOT_ENFORCEABLE] = {"not_enforceable", STATUS_CAPABILITY_DENIED},
    [REASON_NO_SUCH_SECRET] = {"no_such_secret", STATUS_CAPABILITY_DENIED},
    [REASON_NO_EXECUTOR] = {"no_executor", STATUS_CAPABILITY_DENIED},
    [REASON_COMPANY_NOT_ALLOWED] = {"company_not_allowed", STATUS_UNAUTHORIZED},
    [REASON_GRANT_NOT_ALLOWED] = {"grant_not_allowed", STATUS_UNAUTHORIZED},
    [REASON_EXECUTOR_NOT_ALLOWED] = {"executor_not_allowed", STATUS_UNAUTHORIZED},
    [REASON_GLOBALLY] = {"globally", STATUS_DISABLED},
    [REASON_COMPANY] = {"company", STATUS_DISABLED},
    [REASON_EXECUTOR] = {"executor", STATUS_DISABLED},
    [REASON_LANGUAGE] = {"language", STATUS_DISABLED},
    [REASON_OVERLOADED] = {"overloaded", STATUS_REFUSED},
    [REASON_DRAINING] = {"draining", STATUS_REFUSED},
    [REASON_SPAWN_FAILED] = {"spawn_failed", STATUS_PROVIDER_FAILED},
    [REASON_CRASHED] = {"crashed", STATUS_PROVIDER_FAILED},
    [REASON_PROTOCOL_VIOLATION] = {"protocol_violation", STATUS_PROVIDER_FAILED},
    [REASON_SETUP_FAILED] = {"setup_failed", STATUS_PROVIDER_FAILED},
    [REASON_LOST] = {"lost", STATUS_PROVIDER_FAILED},
    [REASON_HOST_RESTARTED] = {"host_restarted", STATUS_INTERRUPTED},
};

static const char *const demand_words[DEMAND_COUNT] = {
    [DEMAND_LANGUAGE] = "language",
    [DEMAND_NETWORK] = "network",
    [DEMAND_DATA_API] = "data_api",
    [DEMAND_SECRETS] = "secrets",
    [DEMAND_FILESYSTEM_READ] = "filesystem.read",
    [DEMAND_FILESYSTEM_WRITE] = "filesystem.write",
    [DEMAND_LIMIT_FIRST + LIMIT_WALL_MS] = "limits.wall_ms",
    [DEMAND_LIMIT_FIRST + LIMIT_CPU_MS] = "limits.cpu_ms",
    [DEMAND_LIMIT_FIRST + LIMIT_MEMORY_BYTES] = "limits.memory_bytes",
    [DEMAND_LIMIT_FIRST + LIMIT_PROCESSES] = "limits.processes",
    [DEMAND_LIMIT_FIRST + LIMIT_OPEN_FILES] = "limits.open_files",
    [DEMAND_LIMIT_FIRST + LIMIT_SCRATCH_BYTES] = "limits.scratch_bytes",
    [DEMAND_LIMIT_FIRST + LIMIT_OUTPUT_BYTES] = "limits.output_bytes",
};

/* A limit's word is the demand's word after this. */
#define LIMIT_PREFIX_LENGTH (sizeof("limits.") - 1)

static const char *const network_mode_words[NETWORK_MODE_COUNT] = {
    [NETWORK_NONE] = "none",
    [NETWORK_ALLOWLIST] = "allowlist",
    [NETWORK_OPEN] = "open",
};

static const char *const problem_words[PROBLEM_COUNT] = {
    [PROBLEM_NONE] = "",
    [PROBLEM_MISSING] = "missing",
    [PROBLEM_UNKNOWN_MEMBER] = "unknown_member",
    [PROBLEM_DUPLICATE_MEMBER] = "duplicate_member",
    [PROBLEM_WRONG_TYPE] = "wrong_type",
    [PROBLEM_NOT_AN_INTEGER] = "not_an_integer",
    [PROBLEM_OUT_OF_RANGE] = "out_of_range",
    [PROBLEM_EMPTY] = "empty",
    [PROBLEM_TOO_LONG] = "too_long",
    [PROBLEM_TOO_MANY] = "too_many",
    [PROBLEM_CONTROL_CHARACTER] = "control_character",
    [PROBLEM_NOT_UTF8] = "not_utf8",
    [PROBLEM_NOT_BASE64] = "not_base64",
    [PROBLEM_TOO_DEEP] = "too_deep",
    [PROBLEM_NOT_ALLOWED_WORD] = "not_allowed_word",
    [PROBLEM_MALFORMED] = "malformed",
    [PROBLEM_CONFLICT] = "conflict",
    [PROBLEM_REPEATED] = "repeated",
    [PROBLEM_KEY_REUSED] = "key_reused",
};

static const char *const switch_scope_words[SWITCH_SCOPE_COUNT] = {
    [SWITCH_ALL] = "all",
    [SWITCH_COMPANY] = "company",
    [SWITCH_EXECUTOR] = "executor",
    [SWITCH_LANGUAGE] = "language",
};

static const char *const event_kind_words[EVENT_KIND_COUNT] = {
    [EVENT_STARTED] = "started",
    [EVENT_STOPPED] = "stopped",
    [EVENT_RELOADED] = "reloaded",
    [EVENT_SWITCHED] = "switched",
    [EVENT_EXECUTOR_REGISTERED] = "executor_registered",
    [EVENT_KEY_CHANGED] = "key_changed",
    [EVENT_GAP] = "gap",
    [EVENT_CLOCK_STEPPED] = "clock_stepped",
    [EVENT_PARTITION_RETIRED] = "partition_retired",
};

static const char *const output_problem_words[OUTPUT_PROBLEM_COUNT] = {
    [OUTPUT_OK] = "",
    [OUTPUT_MISSING] = "missing",
    [OUTPUT_NOT_REGULAR] = "not_regular",
    [OUTPUT_TOO_BIG] = "too_big",
    [OUTPUT_TOO_MANY] = "too_many",
};

static const char *const language_problem_words[LANGUAGE_PROBLEM_COUNT] = {
    [LANGUAGE_OK] = "",
    [LANGUAGE_NOT_INSTALLED] = "not_installed",
    [LANGUAGE_DOES_NOT_START] = "does_not_start",
    [LANGUAGE_DOES_NOT_COMPILE] = "does_not_compile",
    [LANGUAGE_SAMPLE_FAILED] = "sample_failed",
    [LANGUAGE_TOO_SLOW] = "too_slow",
};

/* The index of word in words[first .. count - 1], or count. */
static size_t find(const char *const *words, size_t first, size_t count, const char *word)
{
    for (size_t i = first; i < count; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return count;
}

const char *status_word(enum status status)
{
    return status_words[status];
}

const char *reason_word(enum reason reason)
{
    return reasons[reason].word;
}

const char *limit_word(enum limit limit)
{
    return demand_words[DEMAND_LIMIT_FIRST + (size_t)limit] + LIMIT_PREFIX_LENGTH;
}

const char *demand_word(enum demand demand)
{
    return demand_words[demand];
}

const char *network_mode_word(enum network_mode mode)
{
    return network_mode_words[mode];
}

const char *problem_word(enum problem problem)
{
    return problem_words[problem];
}

const char *output_problem_word(enum output_problem problem)
{
    return output_problem_words[problem];
}

const char *language_problem_word(enum language_problem problem)
{
    return language_problem_words[problem];
}

const char *event_kind_word(enum event_kind kind)
{
    return event_kind_words[kind];
}

const char *switch_scope_word(enum switch_scope scope)
{
    return switch_scope_words[scope];
}

bool status_from_word(const char *word, enum status *out)
{
    size_t found = find(status_words, STATUS_NONE + 1, STATUS_COUNT, word);
    if (found == STATUS_COUNT)
        return false;
    *out = (enum status)found;
    return true;
}

bool reason_from_word(const char *word, enum reason *out)
{
    for (size_t i = REASON_NONE + 1; i < REASON_COUNT; i++) {
        if (strcmp(reasons[i].word, word) == 0) {
            *out = (enum reason)i;
            return true;
        }
    }
    return false;
}

bool limit_from_word(const char *word, enum limit *out)
{
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (strcmp(limit_word((enum limit)i), word) == 0) {
            *out = (enum limit)i;
            return true;
        }
    }
    return false;
}

bool demand_from_word(const char *word, enum demand *out)
{
    size_t found = find(demand_words, 0, DEMAND_COUNT, word);
    if (found == DEMAND_COUNT)
        return false;
    *out = (enum demand)found;
    return true;
}

bool network_mode_from_word(const char *word, enum network_mode *out)
{
    size_t found = find(network_mode_words, 0, NETWORK_MODE_COUNT, word);
    if (found == NETWORK_MODE_COUNT)
        return false;
    *out = (enum network_mode)found;
    return true;
}

bool output_problem_from_word(const char *word, enum output_problem *out)
{
    size_t found = find(output_problem_words, OUTPUT_OK + 1, OUTPUT_PROBLEM_COUNT, word);
    if (found == OUTPUT_PROBLEM_COUNT)
        return false;
    *out = (enum output_problem)found;
    return true;
}

bool language_problem_from_word(const char *word, enum language_problem *out)
{
    size_t found = find(language_problem_words, LANGUAGE_OK + 1, LANGUAGE_PROBLEM_COUNT, word);
    if (found == LANGUAGE_PROBLEM_COUNT)
        return false;
    *out = (enum language_problem)found;
    return true;
}

enum status reason_status(enum reason reason)
{
    return reasons[reason].status;
}

bool event_kind_from_word(const char *word, enum event_kind *out)
{
    size_t found = find(event_kind_words, 0, EVENT_KIND_COUNT, word);
    if (found == EVENT_KIND_COUNT)
        return false;
    *out = (enum event_kind)found;
    return true;
}

bool switch_scope_from_word(const char *word, enum switch_scope *out)
{
    size_t found = find(switch_scope_words, 0, SWITCH_SCOPE_COUNT, word);
    if (found == SWITCH_SCOPE_COUNT)
        return false;
    *out = (enum switch_scope)found;
    return true;
}

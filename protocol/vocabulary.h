/*
 * vocabulary.h - the closed vocabularies: statuses, reasons, demands, problems, limits, methods.
 *
 * One table each, enum to word and back. What is not in a table cannot be said: no reason, problem
 * or demand in a record, reply or log is ever free text. The words are part of the wire contract
 * (docs/protocol.md); a test walks every table against schemas and documents.
 */
#ifndef AUDITRUN_PROTOCOL_VOCABULARY_H
#define AUDITRUN_PROTOCOL_VOCABULARY_H

#include "protocol/base.h"

/* How a run ended. STATUS_NONE is "has not ended" and has no word. */
enum status {
    STATUS_NONE,
    STATUS_SUCCEEDED,
    STATUS_FAILED,
    STATUS_TIMED_OUT,
    STATUS_LIMIT_EXCEEDED,
    STATUS_CANCELLED,
    STATUS_CAPABILITY_DENIED,
    STATUS_UNAUTHORIZED,
    STATUS_DISABLED,
    STATUS_REFUSED,
    STATUS_PROVIDER_FAILED,
    STATUS_INTERRUPTED,
    STATUS_COUNT
};

/* Why; each reason belongs to exactly one status (reason_status()). */
enum reason {
    REASON_NONE,
    REASON_EXIT_ZERO,
    REASON_EXIT_NONZERO,
    REASON_KILLED_BY_SIGNAL,
    REASON_COMPILE_FAILED,
    REASON_WALL_CLOCK,
    REASON_CPU,
    REASON_MEMORY,
    REASON_PROCESSES,
    REASON_OUTPUT,
    REASON_SCRATCH,
    REASON_CLIENT_CANCELLED,
    REASON_CLIENT_GONE,
    REASON_SHUTDOWN,
    REASON_NOT_ENFORCEABLE,
    REASON_NO_SUCH_SECRET,
    REASON_NO_EXECUTOR,
    REASON_COMPANY_NOT_ALLOWED,
    REASON_GRANT_NOT_ALLOWED,
    REASON_EXECUTOR_NOT_ALLOWED,
    REASON_GLOBALLY,
    REASON_COMPANY,
    REASON_EXECUTOR,
    REASON_LANGUAGE,
    REASON_OVERLOADED,
    REASON_DRAINING,
    REASON_SPAWN_FAILED,
    REASON_CRASHED,
    REASON_PROTOCOL_VIOLATION,
    REASON_SETUP_FAILED,
    REASON_LOST,
    REASON_HOST_RESTARTED,
    REASON_COUNT
};

/* The limits of a grant, in the order of their words. */
enum limit {
    LIMIT_WALL_MS,
    LIMIT_CPU_MS,
    LIMIT_MEMORY_BYTES,
    LIMIT_PROCESSES,
    LIMIT_OPEN_FILES,
    LIMIT_SCRATCH_BYTES,
    LIMIT_OUTPUT_BYTES,
    LIMIT_COUNT
};

/* One item that somebody must be able to enforce. Words: "language", "network", "data_api",
 * "secrets", "filesystem.read", "filesystem.write", "limits.wall_ms" ... "limits.output_bytes". */
enum demand {
    DEMAND_LANGUAGE,
    DEMAND_NETWORK,
    DEMAND_DATA_API,
    DEMAND_SECRETS,
    DEMAND_FILESYSTEM_READ,
    DEMAND_FILESYSTEM_WRITE,
    DEMAND_LIMIT_FIRST, /* DEMAND_LIMIT_FIRST + enum limit */
    DEMAND_COUNT = DEMAND_LIMIT_FIRST + LIMIT_COUNT
};

enum network_mode { NETWORK_NONE, NETWORK_ALLOWLIST, NETWORK_OPEN, NETWORK_MODE_COUNT };

/* What can be wrong with a member of params (data.problem of -32602). */
enum problem {
    PROBLEM_NONE,
    PROBLEM_MISSING,           /* "missing": a required member is not there */
    PROBLEM_UNKNOWN_MEMBER,    /* "unknown_member" */
    PROBLEM_DUPLICATE_MEMBER,  /* "duplicate_member" */
    PROBLEM_WRONG_TYPE,        /* "wrong_type" */
    PROBLEM_NOT_AN_INTEGER,    /* "not_an_integer": a number with fraction or exponent */
    PROBLEM_OUT_OF_RANGE,      /* "out_of_range" */
    PROBLEM_EMPTY,             /* "empty" */
    PROBLEM_TOO_LONG,          /* "too_long" */
    PROBLEM_TOO_MANY,          /* "too_many" */
    PROBLEM_CONTROL_CHARACTER, /* "control_character" (C0, DEL, C1, NUL where not allowed) */
    PROBLEM_NOT_UTF8,          /* "not_utf8": a text of the JSON itself is not UTF-8 */
    PROBLEM_NOT_BASE64,        /* "not_base64" */
    PROBLEM_TOO_DEEP,          /* "too_deep" */
    PROBLEM_NOT_ALLOWED_WORD,  /* "not_allowed_word": not in the vocabulary of this member */
    PROBLEM_MALFORMED,         /* "malformed": a name, path, host or id of the wrong form */
    PROBLEM_CONFLICT,          /* "conflict": contradicts another member */
    PROBLEM_REPEATED,          /* "repeated": the same item twice in a list */
    PROBLEM_KEY_REUSED,        /* "key_reused": idempotency key came before with another request */
    PROBLEM_COUNT
};

/* What became of an output file that could not be brought back (outputs[].problem). */
enum output_problem {
    OUTPUT_OK,
    OUTPUT_MISSING,
    OUTPUT_NOT_REGULAR,
    OUTPUT_TOO_BIG,
    OUTPUT_TOO_MANY,
    OUTPUT_PROBLEM_COUNT
};

/* Why an executor that knows a language cannot run it here (unavailable[].problem of an envelope). */
enum language_problem {
    LANGUAGE_OK,
    LANGUAGE_NOT_INSTALLED,    /* "not_installed": the host has no such compiler or runtime */
    LANGUAGE_DOES_NOT_START,   /* "does_not_start": it is there, and cannot be executed */
    LANGUAGE_DOES_NOT_COMPILE, /* "does_not_compile": it refuses a right program */
    LANGUAGE_SAMPLE_FAILED,    /* "sample_failed": a right program does not end as it must */
    LANGUAGE_TOO_SLOW,         /* "too_slow": the time for the trial was over */
    LANGUAGE_PROBLEM_COUNT
};

/* What the daemon itself writes into its chain. */
enum event_kind {
    EVENT_STARTED,  /* "started": the daemon; version, configuration's digest */
    EVENT_STOPPED,  /* "stopped": in order; without it the next start says how it ended */
    EVENT_RELOADED, /* "reloaded" */
    EVENT_SWITCHED, /* "switched": a switch was thrown, by whom */
    EVENT_EXECUTOR_REGISTERED, /* "executor_registered": with its envelope */
    EVENT_KEY_CHANGED,         /* "key_changed": the key that signs checkpoints */
    EVENT_GAP,                 /* "gap": the store does not hold what it had acknowledged */
    EVENT_CLOCK_STEPPED,       /* "clock_stepped" */
    EVENT_PARTITION_RETIRED,   /* "partition_retired": rows were removed by retention */
    EVENT_KIND_COUNT
};

/* What a switch turns off. */
enum switch_scope {
    SWITCH_ALL,      /* "all": every run */
    SWITCH_COMPANY,  /* "company": those for one company */
    SWITCH_EXECUTOR, /* "executor": those at one executor */
    SWITCH_LANGUAGE, /* "language": those in one language */
    SWITCH_SCOPE_COUNT
};

/* Enum to word: a constant string, never NULL for a valid value; "" for *_NONE and *_OK. */
const char *status_word(enum status status);
const char *reason_word(enum reason reason);
const char *limit_word(enum limit limit);
const char *demand_word(enum demand demand);
const char *network_mode_word(enum network_mode mode);
const char *problem_word(enum problem problem);
const char *output_problem_word(enum output_problem problem);
const char *language_problem_word(enum language_problem problem);
const char *event_kind_word(enum event_kind kind);
const char *switch_scope_word(enum switch_scope scope);

/* Word to enum: true and *out set, or false for a word that is not in the vocabulary. */
bool status_from_word(const char *word, enum status *out);
bool reason_from_word(const char *word, enum reason *out);
bool limit_from_word(const char *word, enum limit *out);
bool demand_from_word(const char *word, enum demand *out);
bool network_mode_from_word(const char *word, enum network_mode *out);
bool output_problem_from_word(const char *word, enum output_problem *out);
bool language_problem_from_word(const char *word, enum language_problem *out);
bool event_kind_from_word(const char *word, enum event_kind *out);
bool switch_scope_from_word(const char *word, enum switch_scope *out);

/* The one status that a reason belongs to. */
enum status reason_status(enum reason reason);

#endif

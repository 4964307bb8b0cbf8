/*
 * spec.h - what daemon and provider say to each other (executor contract, version 1).
 *
 * Control socket (descriptor 3 of the provider, SOCK_SEQPACKET), one JSON object a message:
 *   provider: {"ready": true} or {"ready": "ahead"}
 *   daemon:   {"run": {"spec_bytes": N, ...}}  with five descriptors: spec (sealed memfd), stdin,
 *             stdout, stderr, outputs (an empty memfd that the provider, never the code, writes to);
 *             and, where the grant has such, in this order: with "data_port": true the code's end of
 *             the data port; with "secrets": true a memory file (secret_file.h) that the provider wipes
 *             when it has read it; with "paths": N a detached mount for each path of filesystem.read,
 *             then of filesystem.write, in the order of the spec's lists
 *   provider: {"listener": true}  with one descriptor, only in a run with a network: a TCP socket that
 *             listens in the run's own network namespace, before the code starts
 *   provider: {"report": {...}}
 *   daemon:   {"clear": true}, only to a provider that was ready "ahead": it has looked for what the
 *             run left and killed it; what the provider starts from here on is its own
 *   provider: ready again, or exit
 * Both sides read the other's messages as untrusted input.
 */
#ifndef AUDITRUN_PROTOCOL_SPEC_H
#define AUDITRUN_PROTOCOL_SPEC_H

#include "protocol/request.h"

#define SPEC_MESSAGE_BYTES    65536 /* the longest control message */
#define SPEC_DESCRIPTORS      5     /* spec, stdin, stdout, stderr, outputs, in this order */
#define SPEC_MAX_PATHS        (2 * GRANT_MAX_PATHS)
#define SPEC_MAX_DESCRIPTORS  (SPEC_DESCRIPTORS + 2 + SPEC_MAX_PATHS)
#define SPEC_MAX_OUTPUT_BYTES (64u << 20) /* all output files of a run together */
#define SPEC_MAX_BYTES        (96u << 20)

/* The spec as the provider reads it. Same shapes as in a request. */
struct spec {
    char *run_id;
    char *language;
    struct bytes code;
    struct text_list args;
    struct text_list outputs;
    struct request_variable *env;
    size_t env_count;
    struct request_file *files;
    size_t file_count;
    struct grant grant; /* effective */
};

/* The spec of a request under its effective grant: compact JSON, malloc'd; NULL: out of memory.
 * {"run_id", "language", "code_base64", "args", "outputs", "env", "files": [{"path","base64"}],
 *  "grant"} */
char *spec_build(const char *run_id, const struct request *request, const struct grant *effective,
                 size_t *length) AR_MUST_CHECK;
/* 0 with *out owned (spec_free); 1 with the fault set; -ENOMEM. */
int spec_parse(const char *text, size_t length, struct spec **out,
               struct fault *fault) AR_MUST_CHECK;
void spec_free(struct spec *spec);

/* How the provider says that a run ended. */
enum outcome {
    OUTCOME_EXITED,
    OUTCOME_SIGNALED,
    OUTCOME_LIMIT,
    OUTCOME_COMPILE_FAILED,
    OUTCOME_SETUP_FAILED,
    OUTCOME_COUNT
};
const char *outcome_word(enum outcome outcome);
bool outcome_from_word(const char *word, enum outcome *out);

/* Of the data port: calls that were forwarded, calls of methods that are not granted, and bytes to (in)
 * and from (out) the code. -1: the run had none. */
struct usage_data_api {
    int64_t calls;
    int64_t denials;
    int64_t bytes_in;
    int64_t bytes_out;
};

/* Of the proxy: connections that were made, those that were refused, and bytes from and to the
 * network. -1: the run had none. */
struct usage_network {
    int64_t connections;
    int64_t refusals;
    int64_t bytes_in;
    int64_t bytes_out;
};

/* What was used; -1: not known. Microseconds and bytes. */
struct usage {
    int64_t wall_us;
    int64_t user_us;
    int64_t system_us;
    int64_t memory_peak_bytes;
    int64_t processes_peak;
    int64_t output_bytes;
    struct usage_network network; /* the host's to know, as the next one */
    struct usage_data_api data_api;
};
#define USAGE_UNKNOWN ((struct usage){-1, -1, -1, -1, -1, -1, {-1, -1, -1, -1}, {-1, -1, -1, -1}})
/* The known members only; NULL when out of memory. */
json_t *usage_to_json(const struct usage *usage) AR_MUST_CHECK;

/* A file that came back (or did not). content is empty when problem is set. */
struct output_file {
    char *path;
    enum output_problem problem;
    struct bytes content;
};

struct report {
    enum outcome outcome;
    int exit_code;    /* 0..255; only with OUTCOME_EXITED and OUTCOME_COMPILE_FAILED */
    int signal;       /* 1..64; only with OUTCOME_SIGNALED */
    enum limit limit; /* only with OUTCOME_LIMIT: cpu_ms, memory_bytes, processes, scratch_bytes */
    struct usage usage;
};

/* The document that the provider writes to the outputs descriptor when the spec asks for outputs:
 * {"outputs": [{"path", "base64"} | {"path", "problem"}]}, in the order of the spec. Both sides.
 * build: malloc'd text or NULL. parse: 0 with *files owned (spec_outputs_free), 1 with the fault
 * set when it is anything else or names other paths than asked, -ENOMEM. */
char *spec_outputs_build(const struct output_file *files, size_t count,
                         size_t *length) AR_MUST_CHECK;
int spec_outputs_parse(const char *text, size_t length, const struct text_list *asked,
                       struct output_file **files, struct fault *fault) AR_MUST_CHECK;
void spec_outputs_free(struct output_file *files, size_t count);

enum spec_message {
    SPEC_READY,
    SPEC_READY_AHEAD,
    SPEC_LISTENER,
    SPEC_REPORT,
    SPEC_RUN,
    SPEC_CLEAR
};

/* The order of a run, and which descriptors come with it beside the first SPEC_DESCRIPTORS. */
struct spec_run {
    size_t spec_bytes;
    bool data_port;
    bool secrets;
    size_t paths; /* at most SPEC_MAX_PATHS */
};
/* How many descriptors that makes, and which has what place. */
size_t spec_run_descriptors(const struct spec_run *run);
size_t spec_run_secrets_place(const struct spec_run *run);
size_t spec_run_paths_place(const struct spec_run *run);

/* A message of a provider: 0 with *kind SPEC_READY, SPEC_READY_AHEAD, SPEC_LISTENER or SPEC_REPORT
 * (then *report is set); 1 when it is anything else (a protocol violation); -ENOMEM. */
int spec_parse_provider_message(const char *text, size_t length, enum spec_message *kind,
                                struct report *report) AR_MUST_CHECK;
/* A message of the daemon: 0 with *kind SPEC_RUN (then *run is set) or SPEC_CLEAR; 1 when it is
 * anything else; -ENOMEM. */
int spec_parse_daemon_message(const char *text, size_t length, enum spec_message *kind,
                              struct spec_run *run) AR_MUST_CHECK;

/* Builders: malloc'd text, NULL when out of memory. */
char *spec_ready_message(bool ahead) AR_MUST_CHECK;
char *spec_clear_message(void) AR_MUST_CHECK;
char *spec_run_message(const struct spec_run *run) AR_MUST_CHECK;
char *spec_listener_message(void) AR_MUST_CHECK;
char *spec_report_message(const struct report *report) AR_MUST_CHECK;

#endif

/*
 * request.h - params of the `run` method and of the small methods, as checked structs.
 */
#ifndef AUDITRUN_PROTOCOL_REQUEST_H
#define AUDITRUN_PROTOCOL_REQUEST_H

#include "protocol/digest.h"
#include "protocol/grant.h"
#include "protocol/uuid7.h"

#define REQUEST_ATTRIBUTE_BYTES 200 /* company, actor, purpose */
#define REQUEST_KEY_BYTES       200 /* idempotency_key */
#define REQUEST_MAX_ARGS        128
#define REQUEST_MAX_ARG_BYTES   65536  /* one argument, one variable's value */
#define REQUEST_MAX_LIST_BYTES  524288 /* all arguments, or all values of variables */
#define REQUEST_MAX_ENV         128
#define REQUEST_MAX_FILES       256
#define REQUEST_MAX_OUTPUTS     64

struct request_file {
    char *path; /* relative, canonical */
    struct bytes content;
};

struct request_variable {
    char *name;
    char *value; /* no NUL */
};

struct request {
    char *company, *actor, *purpose;
    char *language;
    char *executor;        /* NULL: the daemon chooses */
    char *idempotency_key; /* NULL: none */
    char *trace_parent;    /* NULL: none; W3C traceparent, lower-case hex form */
    struct bytes code;
    struct bytes stdin_bytes;
    struct text_list args;
    struct text_list outputs;
    struct request_variable *env;
    size_t env_count;
    struct request_file *files;
    size_t file_count;
    bool stream;
    struct grant grant;
    char code_sha256[DIGEST_HEX_BYTES];
    /* Over everything that decides what would be run (all members but idempotency_key,
     * trace_parent and stream), canonical: two requests under one key must agree in it. */
    char request_sha256[DIGEST_HEX_BYTES];
};

/* Members: company, actor, purpose, language, code | code_base64 (exactly one), grant (all
 * required); executor, args, stdin | stdin_base64, env, files, outputs, stream, idempotency_key,
 * traceparent. Code may be empty; text members hold no NUL where they go to a command line.
 * Paths in files and outputs: no repeats, no file as a directory of another (C17).
 * 0 with *out owned by the caller (request_free), 1 with the fault set (path relative to params),
 * -ENOMEM, -EIO. */
int request_parse(const json_t *params, struct request **out, struct fault *fault) AR_MUST_CHECK;
void request_free(struct request *request);

/* cancel: exactly one of run_id (UUIDv7) and request_id (a number or string: its JSON text). */
struct cancel_request {
    char run_id[UUID7_TEXT_BYTES]; /* "" if not given */
    char id_text[JSON_ID_TEXT_BYTES];
};
/* id_text is the canonical dump of the value (json_canonical), which for the ids that rpc_parse()
 * lets through can be compared with the same dump of a pending id. */
int cancel_request_parse(const json_t *params, struct cancel_request *out,
                         struct fault *fault) AR_MUST_CHECK;

/* record: run_id, or company and idempotency_key. Pointers borrow from params. */
struct record_request {
    const char *run_id, *company, *idempotency_key;
};
int record_request_parse(const json_t *params, struct record_request *out,
                         struct fault *fault) AR_MUST_CHECK;

/* executors and status take no params: 0, or 1 with the fault set. */
int request_parse_empty(const json_t *params, struct fault *fault) AR_MUST_CHECK;

#endif

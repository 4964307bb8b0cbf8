/*
 * rpc.h - the JSON-RPC 2.0 envelope (https://www.jsonrpc.org/specification), in and out.
 *
 * One object a line. Batches are refused; a notification (no id) gets no answer. Ids are echoed by
 * their exact text. Used by the daemon (calls in, answers out) and by the command line (the other
 * way round).
 */
#ifndef AUDITRUN_PROTOCOL_RPC_H
#define AUDITRUN_PROTOCOL_RPC_H

#include "protocol/json.h"

#define RPC_PROTOCOL 1 /* number of the wire contract, told by `status` */

enum rpc_code {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_METHOD_NOT_FOUND = -32601,
    RPC_INVALID_PARAMS = -32602,
    RPC_INTERNAL_ERROR = -32603,
    RPC_AUDIT_FAILURE = -32001,
    RPC_FORBIDDEN = -32002,
    RPC_NOT_FOUND = -32003
};
#define RPC_CODE_COUNT 8

enum rpc_method {
    RPC_METHOD_RUN,
    RPC_METHOD_CANCEL,
    RPC_METHOD_EXECUTORS,
    RPC_METHOD_RECORD,
    RPC_METHOD_STATUS,
    RPC_METHOD_DISABLE,
    RPC_METHOD_ENABLE,
    RPC_METHOD_SWITCHES,
    RPC_METHOD_TOP,
    RPC_METHOD_COUNT
};

const char *rpc_method_word(enum rpc_method method);

/* A call as it came. id_text is "" for a notification. */
struct rpc_call {
    enum rpc_method method;
    json_t *params;                   /* owned, an object; {} when left out */
    char id_text[JSON_ID_TEXT_BYTES]; /* the id as JSON text: a number or string, "null" refused */
};

/* What to answer instead. id_text is "null" where the id is unknown or must not be used. */
struct rpc_error {
    enum rpc_code code;
    char id_text[JSON_ID_TEXT_BYTES];
    struct fault fault; /* for RPC_INVALID_PARAMS: path relative to params */
};

enum rpc_outcome {
    RPC_CALL = 0,
    RPC_REFUSED = 1, /* answer with error (no answer when error->id_text is "": a notification) */
};

/* Parses one line. Returns RPC_CALL with *call owned by the caller (rpc_call_free), RPC_REFUSED
 * with *error set, or -ENOMEM. A fault in the outer object is RPC_INVALID_REQUEST with id null;
 * one inside params is RPC_INVALID_PARAMS with the call's own id. */
int rpc_parse(const char *line, size_t length, struct rpc_call *call,
              struct rpc_error *error) AR_MUST_CHECK;
void rpc_call_free(struct rpc_call *call);

/* Builders of whole lines, ending in '\n', malloc'd; NULL when out of memory. *length is set. */
char *rpc_result_line(const char *id_text, const json_t *result, size_t *length) AR_MUST_CHECK;
/* data may be NULL. The message is fixed by the code. */
char *rpc_error_line(const char *id_text, enum rpc_code code, const json_t *data,
                     size_t *length) AR_MUST_CHECK;
/* The error line for a refused call (data.path and data.problem for RPC_INVALID_PARAMS). */
char *rpc_refusal_line(const struct rpc_error *error, size_t *length) AR_MUST_CHECK;
/* A notification from the daemon (`output`). */
char *rpc_notification_line(const char *method, const json_t *params, size_t *length) AR_MUST_CHECK;
/* A request of a client. */
char *rpc_request_line(const char *id_text, enum rpc_method method, const json_t *params,
                       size_t *length) AR_MUST_CHECK;

/* The i-th of RPC_CODE_COUNT codes. */
enum rpc_code rpc_code_at(size_t i);
/* The fixed message of a code. */
const char *rpc_message(enum rpc_code code);

#endif

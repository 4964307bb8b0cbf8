/*
 * dataport_call.h - the lines of the data port: what the code may ask, what the service is asked, what
 * it may answer, and the errors that the daemon gives itself. Text only, no descriptors.
 */
#ifndef AUDITRUN_DAEMON_DATAPORT_CALL_H
#define AUDITRUN_DAEMON_DATAPORT_CALL_H

#include "protocol/json.h"
#include "protocol/text.h"

/* Errors of the daemon's own: the code reads a JSON-RPC error with a fixed code and message. */
enum dataport_error {
    DATAPORT_PARSE_ERROR,
    DATAPORT_INVALID_REQUEST,
    DATAPORT_NOT_GRANTED,
    DATAPORT_TOO_BIG,
    DATAPORT_TOO_MANY,
    DATAPORT_RATE_LIMITED,
    DATAPORT_TIMEOUT,
    DATAPORT_UNAVAILABLE,
    DATAPORT_BAD_ANSWER,
    DATAPORT_ERROR_COUNT
};

int dataport_error_code(enum dataport_error error);
const char *dataport_error_message(enum dataport_error error);

/* A line as the code has to read it, ending in '\n', malloc'd; NULL: no memory. */
char *dataport_error_line(enum dataport_error error, const char *id_text,
                          size_t *length) AR_MUST_CHECK;

/* A call of the code. What is borrowed lies in its line. */
struct dataport_call {
    char id_text[JSON_ID_TEXT_BYTES]; /* "" for a notification */
    char method[129];                 /* "" when it is the name of no method */
    const char *params;               /* borrowed: an object or a list; {} when left out */
    size_t params_length;
};

/* Reads a line of the code. 0; 1 when it is no call: *error says why, and its id is not known. */
int dataport_call_parse(const char *line, size_t length, struct dataport_call *call,
                        enum dataport_error *error) AR_MUST_CHECK;

/* Is the method granted: by its name, or by a pattern that ends in ".*"? */
bool dataport_call_is_granted(const struct dataport_call *call, const struct text_list *methods);

/* The line for the service, under the daemon's own number, with the context (JSON); malloc'd; NULL: no
 * memory. */
char *dataport_call_line(const struct dataport_call *call, int64_t number, const char *context,
                         size_t *length) AR_MUST_CHECK;

/* An answer of the service: a result, or an error {code, message, data?}. */
struct dataport_answer {
    int64_t number;
    bool known_number; /* also when the rest is rubbish */
    bool is_error;
    const char *value; /* borrowed from the line */
    size_t length;
};

/* Reads a line of the service. 0; 1 when it is no answer (known_number may be set even so). */
int dataport_answer_parse(const char *line, size_t length,
                          struct dataport_answer *answer) AR_MUST_CHECK;

/* The answer as the code reads it, under its own id; malloc'd; NULL: no memory. */
char *dataport_answer_line(const struct dataport_answer *answer, const char *id_text,
                           size_t *length) AR_MUST_CHECK;

#endif

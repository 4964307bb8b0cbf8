/*
 * json.h - strict reading of JSON over jansson, and canonical writing.
 *
 * What jansson alone does not give: where the fault is (a JSON Pointer, RFC 6901), duplicate
 * members as a fault with a place, numbers that do not fit as a fault of that member instead of
 * the whole document, a limit on nesting, and the exact text of the request's id.
 *
 * A fault never repeats what the client sent, save a member name that is a plain lower-case word
 * ([a-z0-9_]{1,32}); with any other name the pointer ends at the object that holds it.
 */
#ifndef AUDITRUN_PROTOCOL_JSON_H
#define AUDITRUN_PROTOCOL_JSON_H

#include "protocol/vocabulary.h"

#include <jansson.h>

#define JSON_PATH_BYTES    256
#define JSON_MAX_DEPTH     16
#define JSON_ID_TEXT_BYTES 160

/* Where and what. problem == PROBLEM_NONE: no fault. */
struct fault {
    enum problem problem;
    char path[JSON_PATH_BYTES]; /* JSON Pointer; "" is the whole document */
};

enum json_outcome {
    JSON_OK = 0,
    JSON_FAULTY = 1, /* well-formed, but fault is set (duplicate, number, nesting, not UTF-8) */
    JSON_BROKEN = 2  /* not JSON, or not an object */
};

/* A parsed line. */
struct json_document {
    json_t *root;                     /* owned; an object (with faulty values replaced by 0) */
    char id_text[JSON_ID_TEXT_BYTES]; /* the exact text of the outermost "id", "" if none */
    bool id_too_long;                 /* there is one, but it did not fit */
    bool outer_duplicate;             /* the outermost object itself has a member twice */
    struct fault fault;               /* the first fault (an outer_duplicate goes first), path from
                                         the root of the document */
};

/* Parses exactly length bytes (may hold NUL, which is then a fault of the JSON text).
 * Returns an enum json_outcome, or -ENOMEM. On JSON_OK and JSON_FAULTY the caller owns document
 * (json_document_free()). On JSON_BROKEN fault is PROBLEM_WRONG_TYPE at "" when the text is JSON but
 * no object, and PROBLEM_NONE otherwise. Linear in length. Strings of the result may hold NUL. */
int json_parse(const char *text, size_t length, struct json_document *document) AR_MUST_CHECK;
void json_document_free(struct json_document *document);

/* The place that is being read: a chain on the stack, so that a path costs nothing until a fault. */
struct json_place {
    const struct json_place *parent;
    const char *member; /* NULL: use index */
    size_t index;
};

/* Sets the fault to this place (and member, when not NULL) if none is set yet. Returns 1 always,
 * so that a reader can `return json_fault(...)`. */
int json_fault(struct fault *fault, const struct json_place *place, const char *member,
               enum problem problem);

/* One member of an object that is allowed to be there. */
struct json_member {
    const char *name;
    bool required;
};

/* Checks that value is an object whose members are all in the table and none that is required is
 * missing. 0, or 1 with the fault set. */
int json_check_object(const json_t *value, const struct json_member *members, size_t count,
                      const struct json_place *place, struct fault *fault) AR_MUST_CHECK;

/* Readers of one optional member: 0 and *out set (unchanged when the member is absent), or 1 with
 * the fault set. null is a wrong type. */
int json_read_bool(const json_t *object, const char *member, const struct json_place *place,
                   bool *out, struct fault *fault) AR_MUST_CHECK;
/* Whole numbers only (no fraction, no exponent), min <= value <= max. */
int json_read_integer(const json_t *object, const char *member, const struct json_place *place,
                      int64_t min, int64_t max, int64_t *out, struct fault *fault) AR_MUST_CHECK;
/* A text of min..max bytes without control characters (C0, DEL, C1); *out borrows from object. */
int json_read_line(const json_t *object, const char *member, const struct json_place *place,
                   size_t min, size_t max, const char **out, struct fault *fault) AR_MUST_CHECK;

/* Checks a value that is already at hand in the same way (item of a list: member NULL). */
int json_check_line(const json_t *value, const char *member, const struct json_place *place,
                    size_t min, size_t max, const char **out, struct fault *fault) AR_MUST_CHECK;

/* RFC 8785 text of a value whose numbers are all integers within +-2^53 and whose member names are
 * ASCII: compact, members sorted. malloc'd, NULL when out of memory. */
char *json_canonical(const json_t *value) AR_MUST_CHECK;

/* For AR_CLEANUP on json_t *. */
static inline void json_cleanup(json_t **value)
{
    json_decref(*value);
}
#define AR_AUTO_JSON AR_CLEANUP(json_cleanup)

#endif

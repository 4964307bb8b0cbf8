/*
 * json_span.h - where the members of a JSON object are, without a tree of it.
 *
 * For what is passed on and not understood: the whole text is checked (RFC 8259, UTF-8, pairs of
 * surrogates, at most JSON_MAX_DEPTH levels) in one pass that takes no memory, tens of times as fast as
 * making a document of it (json.h), which untrusted text could make slow. Members of inner objects are
 * not compared with each other, and numbers not judged: they stay what they are.
 */
#ifndef AUDITRUN_PROTOCOL_JSON_SPAN_H
#define AUDITRUN_PROTOCOL_JSON_SPAN_H

#include "protocol/json.h"

/* A member that may be there; text is where its value is in the text that was read, NULL when it is
 * not there. The first byte of a value tells its type. */
struct json_span {
    const char *name;
    const char *text;
    size_t length;
};

/* Finds the members of an object. JSON_OK; JSON_FAULTY when it has others, or one twice, or is too deep
 * (what was found before that is set); JSON_BROKEN when it is no JSON, or no object (*is_json). A name
 * that is written with escapes is another name. */
enum json_outcome json_span_read(const char *text, size_t length, struct json_span *members,
                                 size_t count, bool *is_json) AR_MUST_CHECK;

/* A whole number without fraction or exponent that fits. */
bool json_span_integer(const struct json_span *span, int64_t *out) AR_MUST_CHECK;

/* Exactly this text between quotation marks, written without escapes? */
bool json_span_is(const struct json_span *span, const char *text);

#endif

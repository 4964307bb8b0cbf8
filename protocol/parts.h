/*
 * parts.h - what a request and a provider's spec have in common: bytes, arguments, environment,
 * files, outputs.
 *
 * Each reader takes one member of an object: 0 (nothing changed when an optional member is absent),
 * 1 with the fault set, or -ENOMEM. What they fill in stays the caller's in every case.
 */
#ifndef AUDITRUN_PROTOCOL_PARTS_H
#define AUDITRUN_PROTOCOL_PARTS_H

#include "protocol/request.h"

/* Bytes given as text (member) or in base64 (base64_member), at most one of them. *given tells if
 * there was one. Either name may be NULL: that way is then not offered. */
int parts_read_bytes(const json_t *object, const char *member, const char *base64_member,
                     const struct json_place *place, struct bytes *out, bool *given,
                     struct fault *fault) AR_MUST_CHECK;

/* "args": texts without NUL. */
int parts_read_args(const json_t *object, const struct json_place *place, struct text_list *out,
                    struct fault *fault) AR_MUST_CHECK;

/* "outputs": relative paths, none twice, none below another. */
int parts_read_outputs(const json_t *object, const struct json_place *place, struct text_list *out,
                       struct fault *fault) AR_MUST_CHECK;

/* "env": an object of identifiers and texts without NUL. */
int parts_read_env(const json_t *object, const struct json_place *place,
                   struct request_variable **out, size_t *count, struct fault *fault) AR_MUST_CHECK;
void parts_free_env(struct request_variable *env, size_t count);

/* "files": {path, text | base64}, paths as in outputs. With with_text unset only base64 is known. */
int parts_read_files(const json_t *object, bool with_text, const struct json_place *place,
                     struct request_file **out, size_t *count, struct fault *fault) AR_MUST_CHECK;
void parts_free_files(struct request_file *files, size_t count);

#endif

/*
 * input.h - local files that go into a request, and what can be told from a file about its language.
 */
#ifndef AUDITRUN_CLI_INPUT_H
#define AUDITRUN_CLI_INPUT_H

#include "protocol/text.h"

#include <jansson.h>

#define INPUT_MAX_BYTES ((size_t)64 << 20)

/* The whole file, or standard input for "-". 0 with *out owned (bytes_free), or an exit code after
 * the complaint. */
int input_read(const char *path, struct bytes *out) AR_MUST_CHECK;

/* Puts the bytes into object: as text under the name text_member where they are UTF-8 without NUL,
 * else as base64 under base64_member. 0 or -ENOMEM. */
int input_put(json_t *object, const char *text_member, const char *base64_member,
              const struct bytes *bytes) AR_MUST_CHECK;

/* The language by the extension of the file's name, else by the interpreter in its first line
 * ("#!"). NULL: not known. A constant string. */
const char *input_language(const char *path, const struct bytes *code);

#endif

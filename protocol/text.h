/*
 * text.h - forms that a text must have (names, paths, hosts), base64, hex, and growing byte strings.
 */
#ifndef AUDITRUN_PROTOCOL_TEXT_H
#define AUDITRUN_PROTOCOL_TEXT_H

#include "protocol/base.h"

/* Bytes with their length; data is malloc'd and has a NUL after length bytes. Zeroed is empty. */
struct bytes {
    char *data;
    size_t length;
};
void bytes_free(struct bytes *bytes);
/* A copy; 0 or -ENOMEM. */
int bytes_set(struct bytes *bytes, const void *data, size_t length) AR_MUST_CHECK;

/* A list of texts; items are malloc'd. Zeroed is empty. */
struct text_list {
    char **items;
    size_t count;
};
void text_list_free(struct text_list *list);
int text_list_add(struct text_list *list, const char *item) AR_MUST_CHECK; /* 0, -ENOMEM */
bool text_list_has(const struct text_list *list, const char *item);

bool text_is_utf8(const char *data, size_t length);
/* Holds a control character: C0, DEL or C1 (text must be UTF-8). */
bool text_has_control(const char *data, size_t length);
/* [a-z0-9][a-z0-9+#._-]{0,31}: names of languages, executors, clients. */
bool text_is_name(const char *text);
/* [A-Za-z_][A-Za-z0-9_]{0,63}: names of secrets and environment variables. */
bool text_is_identifier(const char *text);
/* Dotted name of a data API method, at most 128 bytes; a trailing ".*" is allowed. */
bool text_is_api_method(const char *text);
/* Does a method, or a pattern of them, cover all that the other one does? "a.*" covers "a.b", "a.b.c" and
 * "a.b.*", not "a". Both are api methods. */
bool text_api_method_covers(const char *pattern, const char *method);
/* Absolute, canonical: no empty, "." or ".." component, no trailing slash; "/" itself is one.
 * At most 4095 bytes, components at most 255. */
bool text_is_canonical_path(const char *text);
/* Relative and canonical, below the working directory: at most 1023 bytes and 32 components. */
bool text_is_relative_path(const char *text);
/* Is path equal to root or below it, by whole components? Both are canonical, or both relative. */
bool text_path_is_below(const char *path, const char *root);
/* "host:port" or "*.host:port": lower-case labels (RFC 1123), at most 253 bytes, port 1..65535
 * without leading zero; "[v6]:port" and IPv4 literals are allowed as hosts. */
bool text_is_host_pattern(const char *text);

/* Standard alphabet with padding (RFC 4648 section 4), no white space. decode returns 0, 1 for bad
 * input, -ENOMEM. encode returns a malloc'd NUL-terminated text or NULL. */
int text_base64_decode(const char *text, size_t length, struct bytes *out) AR_MUST_CHECK;
char *text_base64_encode(const void *data, size_t length) AR_MUST_CHECK;

/* Lower-case hex of so many bytes, with a NUL: out holds 2 * count + 1. And back: exactly that many
 * bytes, or false. */
void text_to_hex(const void *bytes, size_t count, char *out);
bool text_from_hex(const char *text, size_t count, void *bytes) AR_MUST_CHECK;

#endif

/*
 * proxy_http.h - the head of a request to an HTTP proxy, and the head that goes on to the origin.
 *
 * Strict (RFC 9112): what two readers could understand in two ways is refused, never mended. Only
 * CONNECT with "host:port" and an absolute "http:" URL are requests to a proxy. Pure and linear; fed
 * byte by byte or all at once, the result is the same.
 */
#ifndef AUDITRUN_PROTOCOL_PROXY_HTTP_H
#define AUDITRUN_PROTOCOL_PROXY_HTTP_H

#include "protocol/proxy_body.h"
#include "protocol/target.h"

#define PROXY_HTTP_MAX_BYTES 16384 /* of a head, with the empty line at its end */

enum proxy_http_result { PROXY_HTTP_DONE, PROXY_HTTP_MORE, PROXY_HTTP_BAD };

struct proxy_http {
    struct target target;
    bool is_tunnel;         /* CONNECT: no head goes on, and no body is read */
    struct proxy_body body; /* of a request that is none */
    size_t head_bytes;      /* of the input; what is behind belongs to the body or the tunnel */
    char *forward;          /* owned: the head for the origin; NULL for a tunnel */
    size_t forward_length;
};

/* Reads the head at the beginning of the length bytes that have come so far; *scanned (0 at first) is
 * its memory between calls with more and more bytes. DONE with *out owned (proxy_http_free); MORE; BAD
 * also when there is no end within PROXY_HTTP_MAX_BYTES; -ENOMEM. */
int proxy_http_read(const char *data, size_t length, size_t *scanned,
                    struct proxy_http *out) AR_MUST_CHECK;
void proxy_http_free(struct proxy_http *request);

#endif

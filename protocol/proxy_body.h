/*
 * proxy_body.h - where the body of an HTTP/1.1 request ends, while it goes past.
 *
 * Nothing is kept or changed: the proxy passes on what belongs to the body, and nothing behind it.
 * Chunks are read strictly (RFC 9112 section 7.1): no extensions, no trailers, no white space, so that
 * no server can see another end than we do.
 */
#ifndef AUDITRUN_PROTOCOL_PROXY_BODY_H
#define AUDITRUN_PROTOCOL_PROXY_BODY_H

#include "protocol/base.h"

enum proxy_body_state {
    PROXY_BODY_OVER, /* also: there is none */
    PROXY_BODY_PLAIN,
    PROXY_BODY_SIZE,
    PROXY_BODY_SIZE_END,
    PROXY_BODY_DATA,
    PROXY_BODY_DATA_END,
    PROXY_BODY_LAST,
    PROXY_BODY_BROKEN
};

/* Zeroed is "over". */
struct proxy_body {
    enum proxy_body_state state;
    uint64_t left;   /* bytes of the body, or of the chunk, that are still to come */
    unsigned digits; /* of a size so far */
    unsigned at;     /* in a line end */
};

/* A body of so many bytes, or in chunks. */
void proxy_body_plain(struct proxy_body *body, uint64_t length);
void proxy_body_chunked(struct proxy_body *body);

/* How many of the next bytes belong to the body: less than length when it is over behind them, or
 * broken (what was right so far has been counted). */
size_t proxy_body_take(struct proxy_body *body, const char *data, size_t length);

static inline bool proxy_body_is_over(const struct proxy_body *body)
{
    return body->state == PROXY_BODY_OVER;
}

static inline bool proxy_body_is_broken(const struct proxy_body *body)
{
    return body->state == PROXY_BODY_BROKEN;
}

#endif

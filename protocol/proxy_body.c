/*
 * proxy_body.c - a state machine over the bytes of a body; data is skipped as a whole, the framing of
 * chunks read byte by byte.
 */
#include "protocol/proxy_body.h"

#define SIZE_MAX_DIGITS 15

void proxy_body_plain(struct proxy_body *body, uint64_t length)
{
    *body = (struct proxy_body){.state = length > 0 ? PROXY_BODY_PLAIN : PROXY_BODY_OVER,
                                .left = length};
}

void proxy_body_chunked(struct proxy_body *body)
{
    *body = (struct proxy_body){.state = PROXY_BODY_SIZE};
}

/* 0..15, or 16 */
static unsigned hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    if (c >= 'a' && c <= 'f')
        return (unsigned)(c - 'a') + 10;
    return c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

static enum proxy_body_state read_size(struct proxy_body *body, char c)
{
    if (c == '\r' && body->digits > 0)
        return PROXY_BODY_SIZE_END;
    unsigned digit = hex_digit(c);
    if (digit > 15 || ++body->digits > SIZE_MAX_DIGITS)
        return PROXY_BODY_BROKEN;
    body->left = body->left << 4 | digit;
    return PROXY_BODY_SIZE;
}

static enum proxy_body_state read_line_end(struct proxy_body *body, char c,
                                           enum proxy_body_state next)
{
    if (c != "\r\n"[body->at])
        return PROXY_BODY_BROKEN;
    if (++body->at < 2)
        return body->state;
    *body = (struct proxy_body){0};
    return next;
}

static enum proxy_body_state read_framing(struct proxy_body *body, char c)
{
    switch (body->state) {
    case PROXY_BODY_SIZE:
        return read_size(body, c);
    case PROXY_BODY_SIZE_END:
        if (c != '\n')
            return PROXY_BODY_BROKEN;
        return body->left > 0 ? PROXY_BODY_DATA : PROXY_BODY_LAST;
    case PROXY_BODY_DATA_END:
        return read_line_end(body, c, PROXY_BODY_SIZE);
    case PROXY_BODY_LAST:
        return read_line_end(body, c, PROXY_BODY_OVER);
    default:
        return PROXY_BODY_BROKEN;
    }
}

static size_t skip_data(struct proxy_body *body, size_t length)
{
    size_t n = body->left < length ? (size_t)body->left : length;
    body->left -= n;
    if (body->left == 0)
        body->state = body->state == PROXY_BODY_PLAIN ? PROXY_BODY_OVER : PROXY_BODY_DATA_END;
    return n;
}

size_t proxy_body_take(struct proxy_body *body, const char *data, size_t length)
{
    size_t taken = 0;
    while (taken < length && !proxy_body_is_over(body) && !proxy_body_is_broken(body)) {
        if (body->state == PROXY_BODY_PLAIN || body->state == PROXY_BODY_DATA) {
            taken += skip_data(body, length - taken);
            continue;
        }
        body->state = read_framing(body, data[taken]);
        if (!proxy_body_is_broken(body))
            taken++;
    }
    return taken;
}

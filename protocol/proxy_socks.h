/*
 * proxy_socks.h - what a client of a SOCKS5 proxy says (RFC 1928): its greeting and its request.
 *
 * Pure readers over all bytes that have come so far; fed byte by byte or all at once, the result is
 * the same. Only "no authentication" and CONNECT are spoken.
 */
#ifndef AUDITRUN_PROTOCOL_PROXY_SOCKS_H
#define AUDITRUN_PROTOCOL_PROXY_SOCKS_H

#include "protocol/target.h"

#define PROXY_SOCKS_VERSION     5
#define PROXY_SOCKS_MAX_BYTES   512 /* of either message; none is longer */
#define PROXY_SOCKS_REPLY_BYTES 10

enum proxy_socks_result { PROXY_SOCKS_DONE, PROXY_SOCKS_MORE, PROXY_SOCKS_BAD };

/* The codes of a reply. */
enum proxy_socks_code {
    PROXY_SOCKS_GRANTED = 0,
    PROXY_SOCKS_FAILURE = 1,
    PROXY_SOCKS_NOT_ALLOWED = 2,
    PROXY_SOCKS_NETWORK_UNREACHABLE = 3,
    PROXY_SOCKS_HOST_UNREACHABLE = 4,
    PROXY_SOCKS_CONNECTION_REFUSED = 5,
    PROXY_SOCKS_NO_SUCH_COMMAND = 7,
    PROXY_SOCKS_NO_SUCH_ADDRESS_TYPE = 8
};

/* done: *used bytes were the greeting, and *offered says whether "no authentication" is in it. */
enum proxy_socks_result proxy_socks_greeting(const uint8_t *data, size_t length, size_t *used,
                                             bool *offered) AR_MUST_CHECK;

/* done: *used bytes were the request; *code is PROXY_SOCKS_GRANTED and *out holds where to, or *code
 * is what to refuse it with (another command, a kind of address that is none, a host that is none). */
enum proxy_socks_result proxy_socks_request(const uint8_t *data, size_t length, size_t *used,
                                            enum proxy_socks_code *code,
                                            struct target *out) AR_MUST_CHECK;

/* The reply with this code, and with no address in it: where the proxy connects from is nobody's
 * business. */
void proxy_socks_reply(enum proxy_socks_code code, uint8_t out[PROXY_SOCKS_REPLY_BYTES]);

#endif

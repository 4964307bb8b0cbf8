/*
 * target.h - where code wants to go: a host, by name or by address, and a port.
 *
 * One reading of a host for every way in (HTTP, SOCKS5), stricter than any resolver: what some
 * resolver takes for an address although it is not written as one ("127.1", "0x7f.1", "2130706433")
 * is neither a name nor an address here, and bytes that no host name has are refused before anything
 * is compared or looked up.
 */
#ifndef AUDITRUN_PROTOCOL_TARGET_H
#define AUDITRUN_PROTOCOL_TARGET_H

#include "protocol/address.h"

#define TARGET_NAME_BYTES      254 /* of a name, with its NUL */
#define TARGET_AUTHORITY_BYTES (TARGET_NAME_BYTES + 8)

struct target {
    bool is_address;
    struct address address;       /* when is_address */
    char name[TARGET_NAME_BYTES]; /* otherwise: lower case, without a final dot */
    uint16_t port;
};

/* A name, four decimal numbers, or an IPv6 address in brackets; exactly length bytes, which may be
 * any. One final dot of a name is taken off. Sets all but the port. */
bool target_parse_host(const char *text, size_t length, struct target *out) AR_MUST_CHECK;

/* 1..65535 in decimal, without leading zeros. */
bool target_parse_port(const char *text, size_t length, uint16_t *out) AR_MUST_CHECK;

/* "host:port", or "host" alone if a port is given that stands for it (0: there must be one). */
bool target_parse_authority(const char *text, size_t length, uint16_t port,
                            struct target *out) AR_MUST_CHECK;

/* Does an entry of a grant (text_is_host_pattern()) cover it? By whole labels: "*." stands for one or
 * more of them, never for none. The port is exact. An address is covered only by the same address,
 * a name never by one. */
bool target_matches(const struct target *target, const char *pattern);

/* Does an entry of a grant cover all that another one covers? "*.b:443" covers "a.b:443" and "*.a.b:443",
 * and itself. */
bool target_pattern_covers(const char *pattern, const char *other);

/* As a Host header has it: without the port where it is default_port. */
void target_to_authority(const struct target *target, uint16_t default_port,
                         char out[TARGET_AUTHORITY_BYTES]);

#endif

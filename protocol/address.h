/*
 * address.h - IP addresses, and which of them are anybody's business.
 *
 * An address is public only if no special-purpose registry (IANA IPv4 and IPv6, RFC 6890) has it, and
 * it carries no other address inside (IPv4-mapped, NAT64, 6to4, Teredo): those lead where the address
 * inside leads.
 */
#ifndef AUDITRUN_PROTOCOL_ADDRESS_H
#define AUDITRUN_PROTOCOL_ADDRESS_H

#include "protocol/base.h"

#include <sys/socket.h>

#define ADDRESS_TEXT_BYTES 64

struct address {
    bool is_v6;
    uint8_t bytes[16]; /* network order; the first 4 of IPv4 */
};

struct address_range {
    struct address base;
    unsigned prefix; /* bits */
};

/* Strict forms only: four decimal numbers without leading zeros, or what inet_pton(3) takes for IPv6
 * (no zone). */
bool address_parse(const char *text, struct address *out) AR_MUST_CHECK;
/* "10.1.0.0/16", "fd00::/8"; an address alone is a range of one. Bits behind the prefix must be 0. */
bool address_range_parse(const char *text, struct address_range *out) AR_MUST_CHECK;
bool address_in_range(const struct address *address, const struct address_range *range);

/* May it be connected to: is it public, or in one of these ranges? An IPv6 address that carries an IPv4
 * address is never public, whatever is inside. */
bool address_is_allowed(const struct address *address, const struct address_range *ranges,
                        size_t count);

/* From and to a socket address. from: false for other families. */
bool address_from_sockaddr(const struct sockaddr *sockaddr, struct address *out) AR_MUST_CHECK;
socklen_t address_to_sockaddr(const struct address *address, uint16_t port,
                              struct sockaddr_storage *out);

#endif

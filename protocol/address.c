/*
 * address.c - IP addresses and special-purpose ranges.
 *
 * The tables are those of IANA's registries of special-purpose addresses (RFC 6890), with multicast,
 * and with the address at which one large cloud serves its machines, which looks public. What carries
 * an IPv4 address inside an IPv6 one is refused as a whole: whoever wants the IPv4 address may ask for
 * that.
 */
#include "protocol/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const char *const special[] = {
    /* IPv4: this network, private, shared, loopback, link-local (and metadata), protocol assignments,
     * documentation, 6to4 relays, benchmarking, multicast, reserved and broadcast */
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "168.63.129.16",
    /* IPv6: everything that is not global unicast (unspecified, loopback, mapped, NAT64, discard,
     * unique local, link-local, site-local, multicast), and within that protocol assignments with
     * Teredo, documentation, 6to4, segment routing */
    "::/3",
    "4000::/2",
    "8000::/1",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
};

static unsigned width(const struct address *address)
{
    return address->is_v6 ? 128 : 32;
}

bool address_parse(const char *text, struct address *out)
{
    *out = (struct address){.is_v6 = strchr(text, ':') != NULL};
    return inet_pton(out->is_v6 ? AF_INET6 : AF_INET, text, out->bytes) == 1;
}

/* Whole bits that differ are looked at by bytes, then the rest of the last one. */
static bool is_same(const struct address *a, const struct address *b, unsigned prefix)
{
    const unsigned bytes = prefix / 8, bits = prefix % 8;
    const uint8_t mask = (uint8_t)(0xff00u >> bits);
    if (memcmp(a->bytes, b->bytes, bytes) != 0)
        return false;
    return bits == 0 || ((a->bytes[bytes] ^ b->bytes[bytes]) & mask) == 0;
}

static bool has_bits_behind(const struct address_range *range)
{
    for (unsigned bit = range->prefix; bit < width(&range->base); bit++)
        if (range->base.bytes[bit / 8] & (0x80u >> bit % 8))
            return true;
    return false;
}

bool address_range_parse(const char *text, struct address_range *out)
{
    char base[ADDRESS_TEXT_BYTES];
    const size_t length = strcspn(text, "/");
    if (length >= sizeof base)
        return false;
    memcpy(base, text, length);
    base[length] = '\0';
    *out = (struct address_range){0};
    if (!address_parse(base, &out->base))
        return false;
    out->prefix = width(&out->base);
    if (text[length] == '\0')
        return true;
    const char *digits = text + length + 1;
    const size_t count = strspn(digits, "0123456789");
    if (count == 0 || count > 3 || digits[count] != '\0' || (count > 1 && digits[0] == '0'))
        return false;
    const unsigned long prefix = strtoul(digits, NULL, 10);
    if (prefix > out->prefix)
        return false;
    out->prefix = (unsigned)prefix;
    return !has_bits_behind(out);
}

bool address_in_range(const struct address *address, const struct address_range *range)
{
    return address->is_v6 == range->base.is_v6 && is_same(address, &range->base, range->prefix);
}

static bool is_public(const struct address *address)
{
    for (size_t i = 0; i < AR_COUNT(special); i++) {
        struct address_range range;
        if (!address_range_parse(special[i], &range) || address_in_range(address, &range))
            return false;
    }
    return true;
}

bool address_is_allowed(const struct address *address, const struct address_range *ranges,
                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (address_in_range(address, &ranges[i]))
            return true;
    return is_public(address);
}

bool address_from_sockaddr(const struct sockaddr *sockaddr, struct address *out)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    *out = (struct address){.is_v6 = sockaddr->sa_family == AF_INET6};
    if (sockaddr->sa_family == AF_INET) {
        memcpy(&v4, sockaddr, sizeof v4);
        memcpy(out->bytes, &v4.sin_addr, sizeof v4.sin_addr);
    } else if (out->is_v6) {
        memcpy(&v6, sockaddr, sizeof v6);
        memcpy(out->bytes, &v6.sin6_addr, sizeof v6.sin6_addr);
    }
    return out->is_v6 || sockaddr->sa_family == AF_INET;
}

socklen_t address_to_sockaddr(const struct address *address, uint16_t port,
                              struct sockaddr_storage *out)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memset(out, 0, sizeof *out);
    if (address->is_v6) {
        memcpy(&v6.sin6_addr, address->bytes, sizeof v6.sin6_addr);
        memcpy(out, &v6, sizeof v6);
        return sizeof v6;
    }
    memcpy(&v4.sin_addr, address->bytes, sizeof v4.sin_addr);
    memcpy(out, &v4, sizeof v4);
    return sizeof v4;
}

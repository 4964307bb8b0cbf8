/*
 * proxy_socks.c - the two messages of a SOCKS5 client.
 *
 * Lengths are looked at before what they measure; a message that cannot become one is bad at its first
 * wrong byte.
 */
#include "protocol/proxy_socks.h"

#include <string.h>

enum { COMMAND_CONNECT = 1 };
enum { TYPE_IPV4 = 1, TYPE_NAME = 3, TYPE_IPV6 = 4 };

enum proxy_socks_result proxy_socks_greeting(const uint8_t *data, size_t length, size_t *used,
                                             bool *offered)
{
    if (length > 0 && data[0] != PROXY_SOCKS_VERSION)
        return PROXY_SOCKS_BAD;
    if (length > 1 && data[1] == 0)
        return PROXY_SOCKS_BAD;
    if (length < 2 || length < 2 + (size_t)data[1])
        return PROXY_SOCKS_MORE;
    *used = 2 + (size_t)data[1];
    *offered = memchr(data + 2, 0, data[1]) != NULL;
    return PROXY_SOCKS_DONE;
}

/* Bytes of the address of this type from its own beginning; 0: the type is unknown. */
static size_t address_length(uint8_t type, uint8_t first)
{
    switch (type) {
    case TYPE_IPV4:
        return 4;
    case TYPE_IPV6:
        return 16;
    case TYPE_NAME:
        return 1 + (size_t)first;
    default:
        return 0;
    }
}

static bool read_address(uint8_t type, const uint8_t *bytes, struct target *out)
{
    if (type == TYPE_NAME)
        return bytes[1] != '[' && target_parse_host((const char *)bytes + 1, bytes[0], out);
    *out = (struct target){.is_address = true, .address.is_v6 = type == TYPE_IPV6};
    memcpy(out->address.bytes, bytes, type == TYPE_IPV6 ? 16 : 4);
    return true;
}

static enum proxy_socks_code judge(const uint8_t *data, size_t address, struct target *out)
{
    if (data[1] != COMMAND_CONNECT)
        return PROXY_SOCKS_NO_SUCH_COMMAND;
    if (!read_address(data[3], data + 4, out))
        return PROXY_SOCKS_NOT_ALLOWED;
    out->port = (uint16_t)(data[4 + address] << 8 | data[5 + address]);
    return out->port == 0 ? PROXY_SOCKS_NOT_ALLOWED : PROXY_SOCKS_GRANTED;
}

enum proxy_socks_result proxy_socks_request(const uint8_t *data, size_t length, size_t *used,
                                            enum proxy_socks_code *code, struct target *out)
{
    if ((length > 0 && data[0] != PROXY_SOCKS_VERSION) || (length > 2 && data[2] != 0))
        return PROXY_SOCKS_BAD;
    if (length < 5)
        return PROXY_SOCKS_MORE;
    size_t address = address_length(data[3], data[4]);
    if (address == 0) {
        *used = length; /* where it would end nobody knows */
        *code = PROXY_SOCKS_NO_SUCH_ADDRESS_TYPE;
        return PROXY_SOCKS_DONE;
    }
    if (length < 4 + address + 2)
        return PROXY_SOCKS_MORE;
    *used = 4 + address + 2;
    *code = judge(data, address, out);
    return PROXY_SOCKS_DONE;
}

void proxy_socks_reply(enum proxy_socks_code code, uint8_t out[PROXY_SOCKS_REPLY_BYTES])
{
    memset(out, 0, PROXY_SOCKS_REPLY_BYTES);
    out[0] = PROXY_SOCKS_VERSION;
    out[1] = (uint8_t)code;
    out[3] = TYPE_IPV4;
}

/*
 * target.c - hosts and ports as code asks for them, and how they are compared with a grant.
 *
 * By bytes and without the locale. An underscore is taken in labels, since names that are in use have
 * it; entries of a grant have none, so such a name is covered by a wildcard or by nothing.
 */
#include "protocol/target.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define LABEL_MAX_BYTES 63

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_label_byte(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static bool is_label(const char *label, size_t length)
{
    if (length == 0 || length > LABEL_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_label_byte(label[i]))
            return false;
    return label[0] != '-' && label[length - 1] != '-';
}

/* What some resolver would take for a number: decimal, octal, or hexadecimal with "0x". */
static bool is_number(const char *label)
{
    if (label[0] == '0' && label[1] == 'x')
        return label[2 + strspn(label + 2, "0123456789abcdef")] == '\0';
    return label[strspn(label, "0123456789")] == '\0';
}

static bool is_name(const char *name)
{
    const char *label = name;
    for (;;) {
        size_t length = strcspn(label, ".");
        if (!is_label(label, length))
            return false;
        if (label[length] == '\0')
            return !is_number(label);
        label += length + 1;
    }
}

static bool parse_v6(const char *text, size_t length, struct target *out)
{
    char inside[ADDRESS_TEXT_BYTES];
    if (length < 4 || length - 2 >= sizeof inside || text[length - 1] != ']')
        return false;
    memcpy(inside, text + 1, length - 2);
    inside[length - 2] = '\0';
    out->is_address = true;
    return strlen(inside) == length - 2 && address_parse(inside, &out->address) &&
           out->address.is_v6;
}

bool target_parse_host(const char *text, size_t length, struct target *out)
{
    *out = (struct target){0};
    if (length == 0)
        return false;
    if (text[0] == '[')
        return parse_v6(text, length, out);
    size_t taken = length > 1 && text[length - 1] == '.' ? length - 1 : length;
    if (taken >= sizeof out->name)
        return false;
    for (size_t i = 0; i < taken; i++)
        out->name[i] = to_lower(text[i]);
    if (memchr(out->name, '\0', taken) || strchr(out->name, ':'))
        return false;
    if (taken == length && address_parse(out->name, &out->address)) {
        memset(out->name, 0, sizeof out->name);
        out->is_address = true;
        return true;
    }
    return is_name(out->name);
}

bool target_parse_port(const char *text, size_t length, uint16_t *out)
{
    uint32_t port = 0;
    if (length == 0 || length > 5 || text[0] == '0')
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return false;
        port = port * 10 + (uint32_t)(text[i] - '0');
    }
    *out = (uint16_t)port;
    return port <= UINT16_MAX;
}

bool target_parse_authority(const char *text, size_t length, uint16_t port, struct target *out)
{
    const char *bracket = length > 0 && text[0] == '[' ? memchr(text, ']', length) : NULL;
    const char *from = bracket ? bracket : text;
    const char *colon = length > 0 ? memchr(from, ':', length - (size_t)(from - text)) : NULL;
    size_t host = colon ? (size_t)(colon - text) : length;
    if (!target_parse_host(text, host, out))
        return false;
    if (colon)
        return target_parse_port(colon + 1, length - host - 1, &out->port);
    out->port = port;
    return port != 0;
}

static bool is_same_address(const struct target *target, const char *host, size_t length)
{
    struct target entry;
    struct address_range one = {.prefix = 32};
    if (!target_parse_host(host, length, &entry) || !entry.is_address)
        return false;
    one.base = entry.address;
    one.prefix = entry.address.is_v6 ? 128 : 32;
    return address_in_range(&target->address, &one);
}

static bool covers_name(const char *pattern, size_t length, const char *name)
{
    if (pattern[0] != '*')
        return strlen(name) == length && memcmp(name, pattern, length) == 0;
    /* "*.a.b" covers what ends in ".a.b" and has a label before it. */
    size_t tail = length - 1, all = strlen(name);
    return all > tail && memcmp(name + all - tail, pattern + 1, tail) == 0;
}

bool target_matches(const struct target *target, const char *pattern)
{
    const char *colon = strrchr(pattern, ':');
    uint16_t port;
    if (!colon || colon == pattern || !target_parse_port(colon + 1, strlen(colon + 1), &port))
        return false;
    if (port != target->port)
        return false;
    size_t length = (size_t)(colon - pattern);
    return target->is_address ? is_same_address(target, pattern, length)
                              : covers_name(pattern, length, target->name);
}

bool target_pattern_covers(const char *pattern, const char *other)
{
    struct target target;
    size_t length = strlen(other);
    if (strcmp(pattern, other) == 0)
        return true;
    if (other[0] != '*')
        return target_parse_authority(other, length, 0, &target) &&
               target_matches(&target, pattern);
    /* What a star stands for ends at a dot: so whatever ends like other, ends like pattern. */
    return pattern[0] == '*' && length > strlen(pattern) &&
           strcmp(other + length - strlen(pattern) + 1, pattern + 1) == 0;
}

void target_to_authority(const struct target *target, uint16_t default_port,
                         char out[TARGET_AUTHORITY_BYTES])
{
    char text[INET6_ADDRSTRLEN] = "";
    const struct address *address = &target->address;
    const char *host = target->name, *left = "", *right = "";
    if (target->is_address) {
        (void)inet_ntop(address->is_v6 ? AF_INET6 : AF_INET, address->bytes, text, sizeof text);
        host = text;
        left = address->is_v6 ? "[" : "";
        right = address->is_v6 ? "]" : "";
    }
    if (target->port == default_port)
        (void)snprintf(out, TARGET_AUTHORITY_BYTES, "%s%s%s", left, host, right);
    else
        (void)snprintf(out, TARGET_AUTHORITY_BYTES, "%s%s%s:%u", left, host, right,
                       (unsigned)target->port);
}

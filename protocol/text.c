/*
 * text.c - the forms of texts, base64, and lists of texts.
 *
 * Every question is answered in one pass over the text, by bytes and without the locale: what a
 * name, path or host is must not depend on where the daemon runs.
 */
#include "protocol/text.h"

#include <arpa/inet.h>
#include <string.h>

#define PATH_MAX_BYTES          4095
#define PATH_COMPONENT_BYTES    255
#define RELATIVE_MAX_BYTES      1023
#define RELATIVE_MAX_COMPONENTS 32
#define HOST_MAX_BYTES          253
#define HOST_LABEL_BYTES        63
#define API_METHOD_BYTES        128

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define UPPER  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}

int bytes_set(struct bytes *bytes, const void *data, size_t length)
{
    size_t size;
    if (!base_add(length, (size_t)1, &size))
        return -ENOMEM;
    char *copy = malloc(size);
    if (!copy)
        return -ENOMEM;
    if (length > 0)
        memcpy(copy, data, length);
    copy[length] = '\0';
    free(bytes->data);
    *bytes = (struct bytes){.data = copy, .length = length};
    return 0;
}

void text_list_free(struct text_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct text_list){0};
}

int text_list_add(struct text_list *list, const char *item)
{
    /* The array doubles whenever the count is a power of two. */
    if ((list->count & (list->count - 1)) == 0) {
        size_t room = list->count > 0 ? list->count * 2 : 1;
        char **items = reallocarray(list->items, room, sizeof(*items));
        if (!items)
            return -ENOMEM;
        list->items = items;
    }
    char *copy = strdup(item);
    if (!copy)
        return -ENOMEM;
    list->items[list->count++] = copy;
    return 0;
}

bool text_list_has(const struct text_list *list, const char *item)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], item) == 0)
            return true;
    return false;
}

/* Bytes of the UTF-8 sequence at p (at most left bytes), or 0 when it is none (RFC 3629). */
static size_t sequence_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0;
    bool beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

bool text_is_utf8(const char *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < length;) {
        size_t step = sequence_length(bytes + i, length - i);
        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

bool text_has_control(const char *data, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)data;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < 0x20 || bytes[i] == 0x7f)
            return true;
        /* U+0080..U+009F are 0xc2 0x80 .. 0xc2 0x9f. */
        if (bytes[i] == 0xc2 && i + 1 < length && bytes[i + 1] < 0xa0)
            return true;
    }
    return false;
}

/* One character of first, then only those of rest, at most max bytes in all. */
static bool is_word(const char *text, const char *first, const char *rest, size_t max)
{
    if (text[0] == '\0' || !strchr(first, text[0]))
        return false;
    size_t length = 1 + strspn(text + 1, rest);
    return length <= max && text[length] == '\0';
}

bool text_is_name(const char *text)
{
    return is_word(text, LOWER DIGITS, LOWER DIGITS "+#._-", 32);
}

bool text_is_identifier(const char *text)
{
    return is_word(text, LOWER UPPER "_", LOWER UPPER DIGITS "_", 64);
}

bool text_is_api_method(const char *text)
{
    if (strnlen(text, API_METHOD_BYTES + 1) > API_METHOD_BYTES)
        return false;
    for (const char *segment = text;; segment++) {
        if (segment != text && strcmp(segment, "*") == 0)
            return true;
        size_t length = strspn(segment, LOWER UPPER DIGITS "_-");
        if (length == 0)
            return false;
        segment += length;
        if (*segment == '\0')
            return true;
        if (*segment != '.')
            return false;
    }
}

bool text_api_method_covers(const char *pattern, const char *method)
{
    size_t length = strlen(pattern);
    if (strcmp(pattern, method) == 0)
        return true;
    return length > 2 && strcmp(pattern + length - 2, ".*") == 0 &&
           strncmp(method, pattern, length - 1) == 0;
}

/* Components joined by single slashes, none empty, "." or "..", at most max of them. */
static bool is_chain(const char *text, size_t max)
{
    for (size_t count = 1; count <= max; count++) {
        size_t length = strcspn(text, "/");
        if (length == 0 || length > PATH_COMPONENT_BYTES)
            return false;
        if (text[0] == '.' && (length == 1 || (length == 2 && text[1] == '.')))
            return false;
        text += length;
        if (*text == '\0')
            return true;
        text++;
    }
    return false;
}

bool text_is_canonical_path(const char *text)
{
    size_t length = strnlen(text, PATH_MAX_BYTES + 1);
    if (text[0] != '/' || length > PATH_MAX_BYTES || text_has_control(text, length))
        return false;
    return length == 1 || is_chain(text + 1, PATH_MAX_BYTES);
}

bool text_is_relative_path(const char *text)
{
    size_t length = strnlen(text, RELATIVE_MAX_BYTES + 1);
    if (length > RELATIVE_MAX_BYTES || text_has_control(text, length))
        return false;
    return is_chain(text, RELATIVE_MAX_COMPONENTS);
}

bool text_path_is_below(const char *path, const char *root)
{
    size_t length = strlen(root);
    if (strcmp(root, "/") == 0)
        return true;
    return strncmp(path, root, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* ":port" and nothing behind it. */
static bool is_port(const char *text)
{
    if (text[0] != ':' || text[1] < '1' || text[1] > '9')
        return false;
    const char *digits = text + 1;
    size_t length = strspn(digits, DIGITS);
    if (digits[length] != '\0' || length > 5)
        return false;
    return strtoul(digits, NULL, 10) <= 65535;
}

/* An IPv6 address in brackets, then a port. Lower case, no zone, and not this host itself: what
 * means loopback on one side of a namespace means something else on the other. */
static bool is_v6_pattern(const char *text)
{
    char address[INET6_ADDRSTRLEN];
    size_t length = strspn(text + 1, DIGITS "abcdef:.");
    if (text[length + 1] != ']' || length >= sizeof(address))
        return false;
    memcpy(address, text + 1, length);
    address[length] = '\0';
    struct in6_addr parsed;
    if (inet_pton(AF_INET6, address, &parsed) != 1)
        return false;
    if (IN6_IS_ADDR_LOOPBACK(&parsed) || IN6_IS_ADDR_UNSPECIFIED(&parsed))
        return false;
    return is_port(text + length + 2);
}

/* Four decimal numbers: inet_pton takes no leading zeros, no octal and no short forms. */
static bool is_v4(const char *host, size_t length)
{
    char address[INET_ADDRSTRLEN];
    struct in_addr parsed;
    if (length >= sizeof(address))
        return false;
    memcpy(address, host, length);
    address[length] = '\0';
    if (inet_pton(AF_INET, address, &parsed) != 1)
        return false;
    unsigned int net = ntohl(parsed.s_addr) >> 24;
    return net != 0 && net != 127;
}

static bool is_label(const char *label, size_t length)
{
    if (length == 0 || length > HOST_LABEL_BYTES)
        return false;
    return label[0] != '-' && label[length - 1] != '-';
}

/* Labels of lower-case letters, digits and hyphens, up to the colon. A name whose last label is a
 * number would be taken for an address by some resolvers: *numeric says so. */
static bool is_host_name(const char *host, size_t length, bool *numeric)
{
    const char *end = host + length;
    for (const char *label = host;; label++) {
        size_t size = strspn(label, LOWER DIGITS "-");
        if (label + size > end || !is_label(label, size))
            return false;
        *numeric = strspn(label, DIGITS) == size;
        label += size;
        if (label == end)
            return true;
        if (*label != '.')
            return false;
    }
}

bool text_is_host_pattern(const char *text)
{
    if (text[0] == '[')
        return is_v6_pattern(text);
    bool wild = text[0] == '*' && text[1] == '.';
    const char *host = wild ? text + 2 : text;
    size_t length = strcspn(host, ":");
    bool numeric = false;
    if ((size_t)(host - text) + length > HOST_MAX_BYTES || !is_port(host + length))
        return false;
    if (!is_host_name(host, length, &numeric))
        return false;
    return !numeric || (!wild && is_v4(host, length));
}

static const char base64_alphabet[] = UPPER LOWER DIGITS "+/";

/* The six bits of a digit, or 64. */
static uint32_t base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

/* The 24 bits of four digits, the last pad of them taken as zero; false when one is no digit. */
static bool base64_group(const char *text, size_t pad, uint32_t *bits)
{
    *bits = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t value = i < 4 - pad ? base64_value(text[i]) : 0;
        if (value > 63)
            return false;
        *bits = *bits << 6 | value;
    }
    return true;
}

int text_base64_decode(const char *text, size_t length, struct bytes *out)
{
    if (length % 4 != 0)
        return 1;
    size_t pad = 0;
    if (length > 0 && text[length - 1] == '=')
        pad = text[length - 2] == '=' ? 2 : 1;
    size_t size = length / 4 * 3 - pad;
    AR_AUTO_FREE char *data = malloc(size + 3);
    if (!data)
        return -ENOMEM;
    char *end = data;
    for (size_t i = 0; i < length; i += 4) {
        uint32_t bits;
        size_t missing = i + 4 == length ? pad : 0;
        if (!base64_group(text + i, missing, &bits))
            return 1;
        /* Bits that no byte takes must be zero, or two texts would mean the same. */
        if ((missing == 1 && (bits & 0xff)) || (missing == 2 && (bits & 0xffff)))
            return 1;
        *end++ = (char)(bits >> 16);
        *end++ = (char)(bits >> 8);
        *end++ = (char)bits;
    }
    data[size] = '\0';
    free(out->data);
    *out = (struct bytes){.length = size, .data = AR_TAKE(data)};
    return 0;
}

char *text_base64_encode(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    size_t size;
    if (!base_mul(length / 3 + 1, (size_t)4, &size))
        return NULL;
    char *text = malloc(size + 1);
    if (!text)
        return NULL;
    char *end = text;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t bits = (uint32_t)bytes[i] << 16;
        if (left > 1)
            bits |= (uint32_t)bytes[i + 1] << 8;
        if (left > 2)
            bits |= bytes[i + 2];
        *end++ = base64_alphabet[bits >> 18];
        *end++ = base64_alphabet[bits >> 12 & 63];
        *end++ = left > 1 ? base64_alphabet[bits >> 6 & 63] : '=';
        *end++ = left > 2 ? base64_alphabet[bits & 63] : '=';
    }
    *end = '\0';
    return text;
}

/* ---- hex ---------------------------------------------------------------------------------------- */

void text_to_hex(const void *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = digits[from[i] >> 4];
        out[2 * i + 1] = digits[from[i] & 15];
    }
    out[2 * count] = '\0';
}

/* The value of a lower-case hex digit, or 16. */
static unsigned hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return (unsigned)(digit - '0');
    return digit >= 'a' && digit <= 'f' ? (unsigned)(digit - 'a') + 10 : 16;
}

bool text_from_hex(const char *text, size_t count, void *bytes)
{
    unsigned char *to = bytes;
    for (size_t i = 0; i < count; i++) {
        unsigned high = hex_value(text[2 * i]);
        unsigned low = high < 16 ? hex_value(text[2 * i + 1]) : 16;
        if (low == 16)
            return false;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return text[2 * count] == '\0';
}

/*
 * mask_view.c - percent sequences and JSON escapes, decoded one byte at a time.
 *
 * decode() looks at what is pending and says how many bytes of it stand for how many others, or that
 * it depends on what comes. A sequence that comes to nothing gives its first byte; the others are
 * looked at again, for one of them may begin a sequence ("%%41").
 */
#include "protocol/mask_view.h"

#include <string.h>

bool mask_view_escapes(enum mask_view view, unsigned char byte)
{
    return (view == MASK_VIEW_PERCENT && byte == '%') || (view == MASK_VIEW_JSON && byte == '\\');
}

void mask_view_put(struct mask_view_reader *reader, unsigned char byte, uint64_t at)
{
    reader->pending[reader->count] = byte;
    reader->at[reader->count++] = at;
}

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum { DECODE_MORE = 0, DECODE_LITERAL = -1 };

/* count hex digits at the place: DECODE_MORE when they may yet come, DECODE_LITERAL when not. */
static int read_hex(const struct mask_view_reader *reader, size_t from, size_t count,
                    uint32_t *value)
{
    *value = 0;
    for (size_t i = from; i < from + count; i++) {
        if (i >= reader->count)
            return DECODE_MORE;
        int digit = hex_digit(reader->pending[i]);
        if (digit < 0)
            return DECODE_LITERAL;
        *value = *value << 4 | (uint32_t)digit;
    }
    return (int)(from + count);
}

static void put_utf8(uint32_t code, struct mask_view_unit *out)
{
    static const unsigned char leads[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    out->count = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = out->count; i-- > 1; code >>= 6)
        out->bytes[i] = (unsigned char)(0x80 | (code & 0x3f));
    out->bytes[0] = (unsigned char)(leads[out->count] | code);
}

/* \uXXXX, and another one when it is the first half of a pair. */
static int decode_unicode(const struct mask_view_reader *reader, struct mask_view_unit *out)
{
    uint32_t code, low;
    int taken = read_hex(reader, 2, 4, &code);
    if (taken <= 0)
        return taken;
    if (code >= 0xdc00 && code < 0xe000)
        return DECODE_LITERAL;
    if (code >= 0xd800 && code < 0xdc00) {
        if (reader->count > 6 && reader->pending[6] != '\\')
            return DECODE_LITERAL;
        if (reader->count > 7 && reader->pending[7] != 'u')
            return DECODE_LITERAL;
        taken = read_hex(reader, 8, 4, &low);
        if (taken <= 0)
            return taken;
        if (low < 0xdc00 || low >= 0xe000)
            return DECODE_LITERAL;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(code, out);
    return taken;
}

static int decode_json(const struct mask_view_reader *reader, struct mask_view_unit *out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (reader->count < 2)
        return DECODE_MORE;
    if (reader->pending[1] == 'u')
        return decode_unicode(reader, out);
    const char *letter = memchr(letters, reader->pending[1], sizeof letters - 1);
    if (!letter)
        return DECODE_LITERAL;
    out->bytes[0] = (unsigned char)values[letter - letters];
    out->count = 1;
    return 2;
}

static int decode_percent(const struct mask_view_reader *reader, struct mask_view_unit *out)
{
    uint32_t value;
    int taken = read_hex(reader, 1, 2, &value);
    out->bytes[0] = (unsigned char)value;
    out->count = 1;
    return taken;
}

bool mask_view_take(struct mask_view_reader *reader, bool last, struct mask_view_unit *out)
{
    if (reader->count == 0)
        return false;
    int taken = DECODE_LITERAL;
    if (mask_view_escapes(reader->view, reader->pending[0]))
        taken =
            reader->view == MASK_VIEW_JSON ? decode_json(reader, out) : decode_percent(reader, out);
    if (taken == DECODE_MORE && !last)
        return false;
    if (taken <= 0) {
        out->bytes[0] = reader->pending[0];
        out->count = 1;
        taken = 1;
    }
    size_t bytes = (size_t)taken;
    out->start = reader->at[0];
    out->end = reader->at[bytes - 1] + 1;
    reader->count -= bytes;
    memmove(reader->pending, reader->pending + bytes, reader->count);
    memmove(reader->at, reader->at + bytes, reader->count * sizeof reader->at[0]);
    return true;
}

/*
 * uuid7.c - UUID version 7: 48 bits of milliseconds, 42 bits of counter, 32 random bits.
 *
 * Layout of the 128 bits (RFC 9562, section 5.7): unix_ts_ms (48), version (4), rand_a (12),
 * variant (2), rand_b (62). The counter is rand_a and the first 30 bits of rand_b; it starts at a
 * random value with its top bit clear, so that it has room to rise within one millisecond.
 */
#include "protocol/uuid7.h"

#include <string.h>

#define TIME_MAX_MS       ((UINT64_C(1) << 48) - 1)
#define COUNTER_MAX       ((UINT64_C(1) << 42) - 1)
#define COUNTER_SEED_MASK (COUNTER_MAX >> 1)

static uint64_t seed(const uint8_t random[10])
{
    uint64_t value = 0;
    for (size_t i = 0; i < 6; i++)
        value = value << 8 | random[i];
    return value & COUNTER_SEED_MASK;
}

/* Moves the generator one step: a newer clock starts a fresh counter, anything else counts on. */
static void step(struct uuid7_generator *generator, uint64_t now_ms, const uint8_t random[10])
{
    if (now_ms > generator->last_ms && now_ms <= TIME_MAX_MS) {
        generator->last_ms = now_ms;
        generator->counter = seed(random);
    } else if (generator->counter < COUNTER_MAX) {
        generator->counter++;
    } else {
        generator->last_ms++;
        generator->counter = seed(random);
    }
}

static void put(uint8_t bytes[16], size_t first, size_t count, uint64_t value)
{
    for (size_t i = count; i-- > 0; value >>= 8)
        bytes[first + i] = (uint8_t)value;
}

static void to_text(const uint8_t bytes[16], char out[UUID7_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    char *end = out;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *end++ = '-';
        *end++ = digits[bytes[i] >> 4];
        *end++ = digits[bytes[i] & 15];
    }
    *end = '\0';
}

void uuid7_next(struct uuid7_generator *generator, uint64_t now_ms, const uint8_t random[10],
                char out[UUID7_TEXT_BYTES])
{
    step(generator, now_ms, random);
    uint64_t counter = generator->counter;
    uint8_t bytes[16];
    put(bytes, 0, 6, generator->last_ms);
    put(bytes, 6, 2, UINT64_C(0x7000) | counter >> 30);
    put(bytes, 8, 4, UINT64_C(0x80000000) | (counter & ((UINT64_C(1) << 30) - 1)));
    memcpy(bytes + 12, random + 6, 4);
    to_text(bytes, out);
}

static unsigned int hex_value(char digit)
{
    return digit <= '9' ? (unsigned int)(digit - '0') : (unsigned int)(digit - 'a' + 10);
}

/* The value of the first digits hex digits of text, hyphens skipped. */
static uint64_t read_hex(const char *text, size_t digits)
{
    uint64_t value = 0;
    for (; digits > 0; text++) {
        if (*text == '-')
            continue;
        value = value << 4 | hex_value(*text);
        digits--;
    }
    return value;
}

void uuid7_raise(struct uuid7_generator *generator, const char *id)
{
    if (!uuid7_is_valid(id))
        return;
    uint64_t time_ms = uuid7_time_ms(id);
    uint64_t rand_a = read_hex(id + 15, 3);
    uint64_t rand_b = read_hex(id + 19, 8) & ((UINT64_C(1) << 30) - 1);
    uint64_t counter = rand_a << 30 | rand_b;
    if (time_ms < generator->last_ms ||
        (time_ms == generator->last_ms && counter <= generator->counter))
        return;
    generator->last_ms = time_ms;
    generator->counter = counter;
}

bool uuid7_is_uuid(const char *text)
{
    for (size_t i = 0; i < UUID7_TEXT_BYTES - 1; i++) {
        char c = text[i];
        bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        if (hyphen ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
    }
    return text[UUID7_TEXT_BYTES - 1] == '\0';
}

bool uuid7_is_valid(const char *text)
{
    return uuid7_is_uuid(text) && text[14] == '7' && strchr("89ab", text[19]) != NULL;
}

uint64_t uuid7_time_ms(const char *text)
{
    return read_hex(text, 12);
}

/*
 * mask_needle.c - a set of values, as the needles that are looked for.
 *
 * Of base64 only the characters that the value alone decides are a needle: those at its two ends may
 * hold bits of what stands beside it. Line ends at a value's end (files mostly have one) are left
 * out before it is encoded, so that it is found with and without them.
 */
#include "protocol/mask_needle.h"

#include <string.h>

struct mask *mask_new(void)
{
    struct mask *mask = calloc(1, sizeof *mask);
    if (mask)
        mask->line_ends = 8;
    return mask;
}

static void wipe_needle(struct mask_needle *needle)
{
    if (needle->back)
        explicit_bzero(needle->back,
                       (needle->length + 1) * sizeof needle->back[0] + needle->length);
    free(needle->back);
}

void mask_free(struct mask *mask)
{
    if (!mask)
        return;
    for (size_t i = 0; i < mask->count; i++)
        wipe_needle(&mask->needles[i]);
    free(mask->needles);
    free(mask);
}

static void fill_back(struct mask_needle *needle)
{
    uint32_t border = 0;
    needle->back[0] = needle->back[1] = 0;
    for (uint32_t i = 1; i < needle->length; i++) {
        while (border > 0 && needle->text[border] != needle->text[i])
            border = needle->back[border];
        if (needle->text[border] == needle->text[i])
            border++;
        needle->back[i + 1] = border;
    }
}

/* An empty needle with room for so many symbols at most, which the caller writes; NULL: no memory. */
static struct mask_needle *begin_needle(struct mask *mask, enum mask_alphabet alphabet, size_t most)
{
    if (mask->count == mask->capacity) {
        size_t capacity = mask->capacity ? 2 * mask->capacity : 8;
        struct mask_needle *needles = reallocarray(mask->needles, capacity, sizeof *needles);
        if (!needles)
            return NULL;
        mask->needles = needles;
        mask->capacity = capacity;
    }
    struct mask_needle *needle = &mask->needles[mask->count];
    *needle = (struct mask_needle){.alphabet = alphabet};
    size_t bytes;
    if (most >= UINT32_MAX / 8 || !base_mul(most + 1, sizeof *needle->back + 1, &bytes))
        return NULL;
    needle->back = calloc(1, bytes);
    if (!needle->back)
        return NULL;
    needle->text = (unsigned char *)(needle->back + most + 1);
    return needle;
}

/* The needle has been written. */
static void end_needle(struct mask *mask, struct mask_needle *needle)
{
    unsigned char first = needle->text[0];
    fill_back(needle);
    needle->next = mask->first[needle->alphabet][first];
    mask->first[needle->alphabet][first] = (uint32_t)++mask->count;
    for (int byte = 0; byte < 256; byte++)
        if (mask_needle_symbol(needle->alphabet, (unsigned char)byte) == first)
            mask->starts[byte] = true;
}

static int add_plain(struct mask *mask, const unsigned char *value, size_t length, size_t plain)
{
    struct mask_needle *needle = begin_needle(mask, MASK_PLAIN, plain);
    if (!needle)
        return -ENOMEM;
    for (size_t i = 0; i < length; i++)
        if (!mask_needle_is_line_end(value[i]))
            needle->text[needle->length++] = mask_needle_symbol(MASK_PLAIN, value[i]);
    end_needle(mask, needle);
    return 0;
}

/* The text when so many bytes stand before the value. */
static int add_base64(struct mask *mask, const unsigned char *value, size_t length, size_t before)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t first = (8 * before + 5) / 6;
    size_t end = 8 * (before + length) / 6;
    struct mask_needle *needle = begin_needle(mask, MASK_BASE64, end - first);
    if (!needle)
        return -ENOMEM;
    for (size_t i = first; i < end; i++) {
        size_t bit = 6 * i - 8 * before;
        unsigned pair = (unsigned)value[bit / 8] << 8;
        if (bit / 8 + 1 < length)
            pair |= value[bit / 8 + 1];
        needle->text[needle->length++] = (unsigned char)digits[pair >> (10 - bit % 8) & 63];
    }
    end_needle(mask, needle);
    return 0;
}

/* The longest row of line ends within the value; a text in CRLF has twice as many. */
static void note_line_ends(struct mask *mask, const unsigned char *value, size_t length)
{
    size_t row = 0;
    for (size_t i = 0; i < length; i++) {
        row = mask_needle_is_line_end(value[i]) ? row + 1 : 0;
        if (2 * row > mask->line_ends)
            mask->line_ends = 2 * row;
    }
}

int mask_add(struct mask *mask, const void *value, size_t length)
{
    const unsigned char *bytes = value;
    size_t plain = 0;
    while (length > 0 && mask_needle_is_line_end(bytes[length - 1]))
        length--;
    for (size_t i = 0; i < length; i++)
        plain += !mask_needle_is_line_end(bytes[i]);
    if (plain < MASK_MIN_BYTES)
        return 0;
    note_line_ends(mask, bytes, length);
    int rc = add_plain(mask, bytes, length, plain);
    for (size_t before = 0; rc == 0 && before < 3; before++)
        rc = add_base64(mask, bytes, length, before);
    return rc;
}

/*
 * fuzz_mask.c - a value, a NUL, another value, a NUL, and a text: whatever its pieces, the same comes out;
 * nothing comes out of what the text does not have; and a value as it is never comes out.
 */
#include "protocol/mask.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The next value, which ends with a NUL that must be there. */
static const uint8_t *add_value(struct mask *mask, const uint8_t *at, const uint8_t *end,
                                size_t *length)
{
    const uint8_t *stop = at ? memchr(at, 0, (size_t)(end - at)) : NULL;
    if (!stop)
        return NULL;
    *length = (size_t)(stop - at);
    require(mask_add(mask, at, *length) == 0);
    return stop + 1;
}

static void take(char *piece, size_t length, char *all, size_t *used)
{
    require((piece != NULL) == (length > 0));
    if (piece)
        memcpy(all + *used, piece, length);
    *used += length;
    free(piece);
}

static char *run(const struct mask *mask, const uint8_t *text, size_t length, size_t most, bool cut,
                 size_t *used)
{
    struct mask_stream *stream = mask_stream_new(mask);
    char *all = malloc(3 * length + 4), *piece;
    size_t got;
    require(stream && all);
    *used = 0;
    for (size_t at = 0; at < length; at += most) {
        size_t n = most < length - at ? most : length - at;
        require(mask_stream_put(stream, text + at, n, &piece, &got) == 0);
        take(piece, got, all, used);
    }
    require(mask_stream_end(stream, cut, &piece, &got) == 0);
    take(piece, got, all, used);
    mask_stream_free(stream);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mask *mask = mask_new();
    size_t length = 0, ignored;
    require(mask != NULL);
    const uint8_t *rest = add_value(mask, data, data + size, &length);
    rest = add_value(mask, rest, data + size, &ignored);
    for (int cut = 0; rest && cut < 2; cut++) {
        size_t text = (size_t)(data + size - rest), whole_length, pieces_length;
        AR_AUTO_FREE char *whole = run(mask, rest, text, text + 1, cut, &whole_length);
        AR_AUTO_FREE char *pieces = run(mask, rest, text, 1 + size % 7, cut, &pieces_length);
        require(whole_length == pieces_length && memcmp(whole, pieces, whole_length) == 0);
        bool is_plain = length >= MASK_MIN_BYTES && !memchr(data, '\n', length) &&
                        !memchr(data, '\r', length) && !memchr(data, '*', length);
        require(!is_plain || !memmem(whole, whole_length, data, length));
    }
    mask_free(mask);
    return 0;
}

/*
 * secret_file.c - the file of secrets: heads of its entries out, entries in.
 *
 * The reader trusts nothing: a name is an identifier, a length is written in one way only and fits in
 * what is left. It hands out places in the caller's own memory, so that no value is ever copied here.
 */
#include "protocol/secret_file.h"

#include <stdio.h>
#include <string.h>

void secret_file_head(const char *name, size_t length, char head[SECRET_HEAD_BYTES])
{
    (void)snprintf(head, SECRET_HEAD_BYTES, "%s %zu\n", name, length);
}

/* The name and the blank after it. */
static int take_name(const char **at, const char *end, char name[65])
{
    size_t left = (size_t)(end - *at);
    const char *blank = memchr(*at, ' ', left < 65 ? left : 65);
    if (!blank)
        return -EPROTO;
    size_t length = (size_t)(blank - *at);
    memcpy(name, *at, length);
    name[length] = '\0';
    if (strlen(name) != length || !text_is_identifier(name))
        return -EPROTO;
    *at = blank + 1;
    return 0;
}

/* 1..SECRET_MAX_BYTES without a leading zero, and the end of the line. */
static int take_length(const char **at, const char *end, size_t *length)
{
    const char *digit = *at;
    size_t value = 0;
    if (digit == end || *digit == '0')
        return -EPROTO;
    for (; digit < end && *digit >= '0' && *digit <= '9'; digit++) {
        value = value * 10 + (size_t)(*digit - '0');
        if (value > SECRET_MAX_BYTES)
            return -EPROTO;
    }
    if (value == 0 || digit == end || *digit != '\n')
        return -EPROTO;
    *at = digit + 1;
    *length = value;
    return 0;
}

int secret_file_next(const char **at, const char *end, struct secret_entry *out)
{
    const char *here = *at;
    if (here == end)
        return 1;
    if (take_name(&here, end, out->name) || take_length(&here, end, &out->length) ||
        (size_t)(end - here) < out->length)
        return -EPROTO;
    out->value = here;
    *at = here + out->length;
    return 0;
}

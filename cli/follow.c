/*
 * follow.c - see follow.h.
 *
 * A piece can end within a character, which a terminal must not get in two: its beginning is held until
 * the rest has come.
 */
#include "cli/follow.h"

#include "cli/terminal.h"

#include <string.h>

int follow_decode(const json_t *content, struct bytes *out)
{
    const json_t *text = json_object_get(content, "text");
    const json_t *base64 = json_object_get(content, "base64");
    if (json_is_string(text))
        return bytes_set(out, json_string_value(text), json_string_length(text));
    if (json_is_string(base64))
        return text_base64_decode(json_string_value(base64), json_string_length(base64), out);
    return 1;
}

/* How many bytes at the end are the beginning of a character that is not whole. */
static size_t unfinished(const char *data, size_t length)
{
    for (size_t back = 1; back <= 3 && back <= length; back++) {
        unsigned char byte = (unsigned char)data[length - back];
        if ((byte & 0xc0) == 0x80)
            continue;
        size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        return whole > back ? back : 0;
    }
    return 0;
}

static int print(struct follow_part *part, FILE *stream, const struct bytes *piece, bool raw)
{
    struct terminal terminal;
    AR_AUTO_FREE char *all = malloc(part->held_count + piece->length + 1);
    if (!all)
        return -ENOMEM;
    memcpy(all, part->held, part->held_count);
    memcpy(all + part->held_count, piece->data, piece->length);
    size_t length = part->held_count + piece->length, held = unfinished(all, length);
    terminal_open(&terminal, stream);
    int rc = terminal_write(&terminal, all, length - held, raw);
    if (rc < 0)
        return rc;
    part->printed += length - held;
    part->held_count = held;
    memcpy(part->held, all + length - held, held);
    return 0;
}

static void take_piece(struct follow *follow, int which, const json_t *params)
{
    struct follow_part *part = &follow->output[which];
    struct bytes piece = {0};
    const json_t *offset = json_object_get(params, "offset");
    part->lost |=
        !json_is_integer(offset) ||
        json_integer_value(offset) != (json_int_t)part->printed + (json_int_t)part->held_count;
    if (part->lost)
        return;
    int rc = follow_decode(params, &piece);
    if (rc == 0 && piece.length > 0)
        rc = print(part, which ? stderr : stdout, &piece, follow->order->raw);
    part->lost = rc != 0;
    bytes_free(&piece);
}

void follow_take(void *context, const char *method, const json_t *params)
{
    struct follow *follow = context;
    const char *name = json_string_value(json_object_get(params, "stream"));
    if (strcmp(method, "output") != 0 || !name)
        return;
    if (follow->order->call.json)
        (void)call_print_json(params); /* a failure shows again when the result is printed */
    else if (strcmp(name, "stdout") == 0)
        take_piece(follow, 0, params);
    else if (strcmp(name, "stderr") == 0)
        take_piece(follow, 1, params);
}

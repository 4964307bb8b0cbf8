/*
 * frame.c - a buffer that hands out lines in place.
 *
 * Bytes before start have been handed out, bytes up to start + scanned are known to hold no end of
 * line, so every byte is looked at once. The buffer never holds more than max_bytes + 1 bytes of
 * one line; room is taken in steps that double, and given back when all has been handed out.
 */
#include "protocol/frame.h"

#include <string.h>

#define FRAME_FIRST_BYTES 4096u

void frame_init(struct frame_reader *reader, size_t max_bytes)
{
    *reader = (struct frame_reader){.max_bytes = max_bytes};
}

void frame_free(struct frame_reader *reader)
{
    free(reader->data);
    *reader = (struct frame_reader){.max_bytes = reader->max_bytes};
}

/* The most that a buffer may take: the longest line with its end. */
static size_t capacity_max(const struct frame_reader *reader)
{
    size_t most;
    return base_add(reader->max_bytes, (size_t)1, &most) ? most : reader->max_bytes;
}

/* Moves what has not been handed out to the front. As a line is only moved when lines before it
 * have been handed out, each byte is moved once at most. */
static void compact(struct frame_reader *reader)
{
    if (reader->start == 0)
        return;
    reader->length -= reader->start;
    if (reader->length > 0)
        memmove(reader->data, reader->data + reader->start, reader->length);
    reader->start = 0;
}

/* Gives back what a long line took. */
static void shrink(struct frame_reader *reader)
{
    reader->start = reader->scanned = reader->length = 0;
    if (reader->capacity <= FRAME_FIRST_BYTES)
        return;
    free(reader->data);
    reader->data = NULL;
    reader->capacity = 0;
}

static int grow(struct frame_reader *reader)
{
    size_t most = capacity_max(reader);
    size_t wanted = reader->capacity > 0 ? reader->capacity : FRAME_FIRST_BYTES / 2;
    wanted = wanted > most / 2 ? most : wanted * 2;
    char *data = realloc(reader->data, wanted);
    if (!data)
        return -ENOMEM;
    reader->data = data;
    reader->capacity = wanted;
    return 0;
}

int frame_space(struct frame_reader *reader, char **space, size_t *available)
{
    compact(reader);
    if (reader->length == reader->capacity) {
        if (reader->capacity >= capacity_max(reader))
            return FRAME_BAD;
        int error = grow(reader);
        if (error)
            return error;
    }
    *space = reader->data + reader->length;
    *available = reader->capacity - reader->length;
    return 0;
}

void frame_commit(struct frame_reader *reader, size_t n)
{
    reader->length += n;
}

enum frame_result frame_next(struct frame_reader *reader, char **line, size_t *length)
{
    size_t held = reader->length - reader->start;
    if (held == 0) {
        shrink(reader);
        return FRAME_MORE;
    }
    char *first = reader->data + reader->start;
    char *end = memchr(first + reader->scanned, '\n', held - reader->scanned);
    if (!end) {
        reader->scanned = held;
        return held > reader->max_bytes ? FRAME_BAD : FRAME_MORE;
    }
    *length = (size_t)(end - first);
    *end = '\0';
    *line = first;
    reader->start += *length + 1;
    reader->scanned = 0;
    return FRAME_DONE;
}

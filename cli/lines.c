/*
 * lines.c - see lines.h. Not getline(), which would take as much memory as a file without newlines
 * wants.
 */
#include "cli/lines.h"

#include <string.h>

#define CHUNK_BYTES 65536

int lines_open(const char *path, struct lines *lines)
{
    *lines = (struct lines){0};
    lines->stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    return lines->stream ? 0 : -errno;
}

void lines_close(struct lines *lines)
{
    if (lines->stream && lines->stream != stdin)
        (void)fclose(lines->stream);
    free(lines->text);
    *lines = (struct lines){0};
}

static int grow(struct lines *lines)
{
    if (lines->length + 2 <= lines->capacity)
        return 0;
    size_t capacity = lines->capacity > 0 ? lines->capacity * 2 : CHUNK_BYTES;
    char *text = realloc(lines->text, capacity);
    if (!text)
        return -ENOMEM;
    lines->text = text;
    lines->capacity = capacity;
    return 0;
}

int lines_next(struct lines *lines)
{
    int c = 0;
    lines->length = 0;
    for (;;) {
        int rc = grow(lines);
        if (rc != 0)
            return rc;
        c = getc_unlocked(lines->stream);
        if (c == EOF || c == '\n')
            break;
        lines->text[lines->length++] = (char)c;
        if (lines->length > LINES_MAX_BYTES)
            return LINES_TOO_LONG;
    }
    lines->text[lines->length] = '\0';
    if (c == EOF && ferror(lines->stream))
        return -EIO;
    if (c == EOF && lines->length == 0)
        return 1;
    lines->number++;
    if (c == EOF)
        return LINES_TORN;
    lines->offset += (int64_t)lines->length + 1;
    return 0;
}

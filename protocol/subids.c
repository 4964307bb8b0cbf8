/*
 * subids.c - reads lines `name-or-number:first:count`.
 *
 * The helpers newuidmap and newgidmap decide by the same files what they do for whom; this reader
 * only finds out what to ask them for, so that a line it takes and they do not costs a refusal.
 */
#include "protocol/subids.h"

#include <string.h>

#define LINE_BYTES 512

struct line {
    char *owner;
    uint32_t first;
    uint32_t count; /* not 0; first + count - 1 is an id */
};

/* A whole decimal number; *end is what follows it. */
static bool read_number(const char *text, char **end, uint32_t *out)
{
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(text, end, 10);
    *out = (uint32_t)value;
    return errno == 0 && value < UINT32_MAX;
}

static bool parse_line(char *text, struct line *line)
{
    char *end;
    uint32_t last;
    char *colon = strchr(text, ':');
    if (!colon || colon == text)
        return false;
    *colon = '\0';
    line->owner = text;
    if (!read_number(colon + 1, &end, &line->first) || *end != ':' ||
        !read_number(end + 1, &end, &line->count) || (*end != '\n' && *end != '\0'))
        return false;
    return line->count > 0 && base_add(line->first, line->count - 1, &last) && last != UINT32_MAX;
}

/* The next good line. A longer one than any good one is passed over, all of it. */
static bool next_line(FILE *file, char buffer[LINE_BYTES], struct line *line)
{
    bool whole = true;
    while (fgets(buffer, LINE_BYTES, file)) {
        bool begins = whole;
        whole = strchr(buffer, '\n') != NULL || feof(file);
        if (begins && whole && parse_line(buffer, line))
            return true;
    }
    return false;
}

static bool is_owner(const struct line *line, const char *name, uid_t uid)
{
    char *end;
    uint32_t number;
    if (name && strcmp(line->owner, name) == 0)
        return true;
    return read_number(line->owner, &end, &number) && *end == '\0' && number == uid;
}

int subids_find(FILE *file, const char *name, uid_t uid, uint32_t number, uint32_t *id)
{
    char buffer[LINE_BYTES];
    struct line line;
    bool any = false;
    while (next_line(file, buffer, &line)) {
        if (!is_owner(&line, name, uid))
            continue;
        any = true;
        if (number < line.count) {
            *id = line.first + number;
            return 0;
        }
        number -= line.count;
    }
    return any ? 2 : 1;
}

size_t subids_list(FILE *file, const char *name, uid_t uid, struct subids_range *ranges, size_t max)
{
    char buffer[LINE_BYTES];
    struct line line;
    size_t count = 0;
    while (count < max && next_line(file, buffer, &line)) {
        if (is_owner(&line, name, uid)) {
            ranges[count].first = line.first;
            ranges[count].count = line.count;
            count++;
        }
    }
    return count;
}

static bool is_one_of(const struct line *line, const struct subids_owner *owners, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_owner(line, owners[i].name, owners[i].uid))
            return true;
    return false;
}

bool subids_are_taken(FILE *file, uint32_t first, uint32_t count, const struct subids_owner *owners,
                      size_t owner_count)
{
    char buffer[LINE_BYTES];
    struct line line;
    const uint64_t end = (uint64_t)first + count;
    while (next_line(file, buffer, &line))
        if (line.first < end && (uint64_t)line.first + line.count > first &&
            !is_one_of(&line, owners, owner_count))
            return true;
    return false;
}

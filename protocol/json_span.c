/*
 * json_span.c - a JSON grammar that keeps nothing but where it is.
 *
 * The functions take a value each and leave the reader behind it; false: it is none. Depth is bounded
 * before anything is entered, so that recursion is too. What is too deep is not looked into.
 */
#include "protocol/json_span.h"

#include "protocol/text.h"

#include <string.h>

struct reader {
    const char *at, *end;
    int depth;
    bool too_deep, faulty;
    struct json_span *members; /* of the outermost object */
    size_t count;
};

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' ||
                                        *reader->at == '\r' || *reader->at == '\n'))
        reader->at++;
}

static bool take(struct reader *reader, char c)
{
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

/* ---- strings ------------------------------------------------------------------------------------ */

/* Four hex digits; -1 when they are not there. */
static int take_hex(struct reader *reader)
{
    int value = 0;
    if (reader->end - reader->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = *reader->at++, lower = (char)(c | 0x20);
        int digit = c >= '0' && c <= '9'           ? c - '0'
                    : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                   : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* Behind the backslash. */
static bool take_escape(struct reader *reader)
{
    if (reader->at == reader->end)
        return false;
    char c = *reader->at++;
    if (c != 'u')
        return memchr("\"\\/bfnrt", c, 8) != NULL;
    int code = take_hex(reader);
    if (code < 0xd800 || code > 0xdfff)
        return code >= 0;
    if (code > 0xdbff || !take(reader, '\\') || !take(reader, 'u'))
        return false;
    int low = take_hex(reader);
    return low >= 0xdc00 && low <= 0xdfff;
}

static bool take_string(struct reader *reader)
{
    if (!take(reader, '"'))
        return false;
    const char *start = reader->at;
    unsigned char all = 0;
    while (reader->at < reader->end) {
        unsigned char c = (unsigned char)*reader->at++;
        all |= c;
        if (c == '"')
            return all < 0x80 || text_is_utf8(start, (size_t)(reader->at - 1 - start));
        if (c < 0x20 || (c == '\\' && !take_escape(reader)))
            return false;
    }
    return false;
}

/* ---- other scalars ------------------------------------------------------------------------------ */

static bool take_digits(struct reader *reader)
{
    const char *start = reader->at;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > start;
}

static bool take_number(struct reader *reader)
{
    (void)take(reader, '-');
    if (!take(reader, '0') && !take_digits(reader))
        return false;
    if (take(reader, '.') && !take_digits(reader))
        return false;
    if (!take(reader, 'e') && !take(reader, 'E'))
        return true;
    if (!take(reader, '+'))
        (void)take(reader, '-');
    return take_digits(reader);
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

/* ---- structure ---------------------------------------------------------------------------------- */

static bool take_value(struct reader *reader);

/* A member of the outermost object has been read. */
static void note_member(struct reader *reader, const char *name, size_t name_length,
                        const char *value)
{
    for (size_t i = 0; i < reader->count; i++) {
        struct json_span *member = &reader->members[i];
        if (strlen(member->name) != name_length || memcmp(member->name, name, name_length) != 0)
            continue;
        if (member->text) {
            reader->faulty = true;
            return;
        }
        member->text = value;
        member->length = (size_t)(reader->at - value);
        return;
    }
    reader->faulty = true;
}

static bool take_member(struct reader *reader)
{
    const char *name = reader->at + 1;
    if (!take_string(reader))
        return false;
    size_t length = (size_t)(reader->at - 1 - name);
    skip_blanks(reader);
    if (!take(reader, ':'))
        return false;
    skip_blanks(reader);
    const char *value = reader->at;
    if (!take_value(reader))
        return false;
    if (reader->depth == 1)
        note_member(reader, name, length, value);
    return true;
}

static bool take_items(struct reader *reader, bool is_object)
{
    char close = is_object ? '}' : ']';
    reader->at++;
    skip_blanks(reader);
    if (take(reader, close))
        return true;
    do {
        skip_blanks(reader);
        if (!(is_object ? take_member(reader) : take_value(reader)))
            return false;
        skip_blanks(reader);
    } while (take(reader, ','));
    return take(reader, close);
}

static bool take_container(struct reader *reader, bool is_object)
{
    if (reader->depth == JSON_MAX_DEPTH) {
        reader->too_deep = true;
        return false;
    }
    reader->depth++;
    bool good = take_items(reader, is_object);
    reader->depth--;
    return good;
}

static bool take_value(struct reader *reader)
{
    switch (reader->at < reader->end ? *reader->at : '\0') {
    case '{':
        return take_container(reader, true);
    case '[':
        return take_container(reader, false);
    case '"':
        return take_string(reader);
    case 't':
        return take_word(reader, "true");
    case 'f':
        return take_word(reader, "false");
    case 'n':
        return take_word(reader, "null");
    default:
        return take_number(reader);
    }
}

enum json_outcome json_span_read(const char *text, size_t length, struct json_span *members,
                                 size_t count, bool *is_json)
{
    struct reader reader = {.at = text, .end = text + length, .members = members, .count = count};
    for (size_t i = 0; i < count; i++)
        members[i].text = NULL;
    skip_blanks(&reader);
    bool is_object = reader.at < reader.end && *reader.at == '{';
    if (!is_object) /* members of what is inside are not meant */
        reader.count = 0;
    bool good = take_value(&reader);
    skip_blanks(&reader);
    *is_json = reader.too_deep || (good && reader.at == reader.end);
    if (!is_object || !*is_json)
        return JSON_BROKEN;
    return reader.faulty || reader.too_deep ? JSON_FAULTY : JSON_OK;
}

bool json_span_integer(const struct json_span *span, int64_t *out)
{
    const char *digit = span->text;
    int64_t value = 0;
    if (!digit || span->length == 0)
        return false;
    bool negative = *digit == '-';
    for (digit += negative; digit < span->text + span->length; digit++)
        if (*digit < '0' || *digit > '9' || !base_mul(value, (int64_t)10, &value) ||
            !base_sub(value, (int64_t)(*digit - '0'), &value)) /* downwards: that end is longer */
            return false;
    if (!negative && value == INT64_MIN)
        return false;
    *out = negative ? value : -value;
    return true;
}

bool json_span_is(const struct json_span *span, const char *text)
{
    size_t length = strlen(text);
    return span->text && span->length == length + 2 && span->text[0] == '"' &&
           memcmp(span->text + 1, text, length) == 0;
}

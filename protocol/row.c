/*
 * row.c - rows of the ledger by their layouts; see row.h. JSON is in row_json.c, times are in
 * row_time.c.
 */
#include "protocol/row.h"

#include "protocol/text.h"
#include "protocol/vocabulary.h"

#include <stdio.h>
#include <string.h>

#define TRACE_ID_BYTES 32
#define CHAIN_COLUMNS  2 /* prev_hash and row_hash, which the hash does not cover */

static bool is_pointer(enum row_form form)
{
    return form <= ROW_TRACE;
}

static const void *at_column(const struct row_column *column, const void *row)
{
    return (const char *)row + column->offset;
}

void row_init(const struct row_layout *layout, void *row)
{
    for (size_t i = 0; i < layout->count; i++) {
        const struct row_column *column = &layout->columns[i];
        if (column->nullable && (column->form == ROW_INTEGER || column->form == ROW_TIME))
            *(int64_t *)(void *)((char *)row + column->offset) = ROW_NULL;
    }
}

char **row_apart(const struct row_layout *layout, void *row, size_t column)
{
    const struct row_column *description = &layout->columns[column];
    return is_pointer(description->form) ? (char **)(void *)((char *)row + description->offset)
                                         : NULL;
}

void row_release(const struct row_layout *layout, void *row)
{
    for (size_t i = 0; i < layout->count; i++) {
        char **text = row_apart(layout, row, i);
        if (text)
            free(*text);
    }
}

size_t row_find(const struct row_layout *layout, const char *name)
{
    size_t i = 0;
    while (i < layout->count && strcmp(layout->columns[i].name, name) != 0)
        i++;
    return i;
}

/* ---- out ---------------------------------------------------------------------------------------- */

static struct row_value text_value(const char *text)
{
    return (struct row_value){.is_null = !text, .text = text};
}

static struct row_value integer_value(int64_t integer)
{
    return (struct row_value){.is_null = integer == ROW_NULL, .integer = integer};
}

struct row_value row_value(const struct row_layout *layout, const void *row, size_t column)
{
    const struct row_column *description = &layout->columns[column];
    const void *at = at_column(description, row);
    switch (description->form) {
    case ROW_LINE:
    case ROW_OBJECT:
    case ROW_ARRAY:
    case ROW_TRACE:
        return text_value(*(char *const *)at);
    case ROW_INTEGER:
    case ROW_TIME:
        return integer_value(*(const int64_t *)at);
    case ROW_BOOL:
        return integer_value(*(const bool *)at);
    case ROW_STATUS:
        return text_value(status_word(*(const enum status *)at));
    case ROW_REASON:
        return text_value(reason_word(*(const enum reason *)at));
    case ROW_KIND:
        return text_value(event_kind_word(*(const enum event_kind *)at));
    case ROW_DIGEST:
        return text_value(*(const char *)at == '\0' && description->nullable ? NULL : at);
    case ROW_ID:
    case ROW_WRITER:
    case ROW_CHAIN_DIGEST:
    case ROW_FORM_COUNT:
        break;
    }
    return text_value(at);
}

const char *row_text(const struct row_layout *layout, const void *row, size_t column,
                     char scratch[ROW_SCRATCH_BYTES])
{
    struct row_value value = row_value(layout, row, column);
    if (value.is_null || value.text)
        return value.text;
    switch (layout->columns[column].form) {
    case ROW_BOOL:
        return value.integer ? "true" : "false";
    case ROW_TIME:
        row_time_text(value.integer, scratch);
        return scratch;
    default:
        (void)snprintf(scratch, ROW_SCRATCH_BYTES, "%lld", (long long)value.integer);
        return scratch;
    }
}

int row_get(const struct row_layout *layout, const void *row, size_t column, char **text)
{
    char scratch[ROW_SCRATCH_BYTES];
    *text = NULL;
    if (column >= layout->count)
        return -ENOENT;
    const char *value = row_text(layout, row, column, scratch);
    if (!value)
        return 0;
    *text = strdup(value);
    return *text ? 0 : -ENOMEM;
}

static char *append(char *end, const char *text)
{
    size_t length = strlen(text);
    memcpy(end, text, length);
    return end + length;
}

char *row_canonical(const struct row_layout *layout, const void *row, size_t *length)
{
    char scratch[ROW_SCRATCH_BYTES];
    size_t size = 1, hashed = layout->count - CHAIN_COLUMNS;
    for (size_t i = 0; i < hashed; i++) {
        struct row_value value = row_value(layout, row, i);
        size += strlen(layout->columns[i].name) + 2;
        size += value.text ? strlen(value.text) : ROW_SCRATCH_BYTES;
    }
    char *text = malloc(size);
    if (!text)
        return NULL;
    char *end = text;
    for (size_t i = 0; i < hashed; i++) {
        const char *value = row_text(layout, row, i, scratch);
        end = append(end, layout->columns[i].name);
        if (value) {
            *end++ = ':';
            end = append(end, value);
        }
        *end++ = '\n';
    }
    *end = '\0';
    *length = (size_t)(end - text);
    return text;
}

int row_hash(const struct row_layout *layout, const void *row, const char *prev_hash,
             char out[DIGEST_HEX_BYTES])
{
    size_t length;
    AR_AUTO_FREE char *canonical = row_canonical(layout, row, &length);
    if (!canonical)
        return -ENOMEM;
    return digest_chain(prev_hash, canonical, length, out);
}

char *row_names(const struct row_layout *layout)
{
    size_t size = 1;
    for (size_t i = 0; i < layout->count; i++)
        size += strlen(layout->columns[i].name) + 4;
    char *names = malloc(size);
    if (!names)
        return NULL;
    char *end = names;
    for (size_t i = 0; i < layout->count; i++) {
        end = append(end, i > 0 ? ", \"" : "\"");
        end = append(end, layout->columns[i].name);
        end = append(end, "\"");
    }
    *end = '\0';
    return names;
}

/* ---- in ----------------------------------------------------------------------------------------- */

static bool is_line(const char *text)
{
    size_t length = strlen(text);
    return text_is_utf8(text, length) && !text_has_control(text, length);
}

/* JSON text on one line; canonical or not is for the hash to say. 0, 1 or -ENOMEM. */
static int check_json(const char *text, json_type type)
{
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20)
            return 1;
    json_error_t error = {0};
    AR_AUTO_JSON json_t *value = json_loads(text, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (!value)
        return error.text[0] == '\0' ? -ENOMEM : 1;
    return json_typeof(value) == type ? 0 : 1;
}

static bool is_trace_id(const char *text)
{
    size_t length = strspn(text, "0123456789abcdef");
    return length == TRACE_ID_BYTES && text[length] == '\0';
}

static bool parse_integer(const char *text, int64_t *out)
{
    const char *digits = text + (text[0] == '-');
    if (digits[0] < '0' || digits[0] > '9' || (digits[0] == '0' && (digits[1] || digits != text)))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || value == ROW_NULL)
        return false;
    *out = value;
    return true;
}

/* Replaces a char * column. */
static int set_pointer(char **at, enum row_form form, const char *text)
{
    if (form == ROW_LINE && !is_line(text))
        return 1;
    if (form == ROW_TRACE && !is_trace_id(text))
        return 1;
    if (form == ROW_OBJECT || form == ROW_ARRAY) {
        int error = check_json(text, form == ROW_OBJECT ? JSON_OBJECT : JSON_ARRAY);
        if (error)
            return error;
    }
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*at);
    *at = copy;
    return 0;
}

/* Replaces a char array column, or refuses. */
static int set_array(char *at, enum row_form form, const char *text)
{
    bool may_be_empty = form == ROW_WRITER || form == ROW_CHAIN_DIGEST;
    bool fits = form == ROW_ID       ? uuid7_is_valid(text)
                : form == ROW_WRITER ? uuid7_is_uuid(text)
                                     : digest_is_hex(text);
    if (!fits && !(may_be_empty && text[0] == '\0'))
        return 1;
    memcpy(at, text, strlen(text) + 1);
    return 0;
}

static int set_bool(bool *at, const char *text)
{
    bool value = strcmp(text, "true") == 0;
    if (!value && strcmp(text, "false") != 0)
        return 1;
    *at = value;
    return 0;
}

/* A status or reason; "" is that of a run that has not ended. */
static int set_ending(void *at, enum row_form form, const char *text)
{
    if (form == ROW_STATUS) {
        enum status status = STATUS_NONE;
        if (text[0] != '\0' && !status_from_word(text, &status))
            return 1;
        *(enum status *)at = status;
        return 0;
    }
    enum reason reason = REASON_NONE;
    if (text[0] != '\0' && !reason_from_word(text, &reason))
        return 1;
    *(enum reason *)at = reason;
    return 0;
}

static int set_null(void *at, enum row_form form)
{
    if (is_pointer(form)) {
        free(*(char **)at);
        *(char **)at = NULL;
    } else if (form == ROW_DIGEST) {
        *(char *)at = '\0';
    } else {
        *(int64_t *)at = ROW_NULL;
    }
    return 0;
}

int row_set(const struct row_layout *layout, void *row, size_t column, const char *text)
{
    if (column >= layout->count)
        return 1;
    const struct row_column *description = &layout->columns[column];
    void *at = (char *)row + description->offset;
    if (!text)
        return description->nullable ? set_null(at, description->form) : 1;
    switch (description->form) {
    case ROW_LINE:
    case ROW_OBJECT:
    case ROW_ARRAY:
    case ROW_TRACE:
        return set_pointer(at, description->form, text);
    case ROW_INTEGER:
        return parse_integer(text, at) ? 0 : 1;
    case ROW_TIME:
        return row_time_parse(text, at) ? 0 : 1;
    case ROW_BOOL:
        return set_bool(at, text);
    case ROW_STATUS:
    case ROW_REASON:
        return set_ending(at, description->form, text);
    case ROW_KIND:
        return event_kind_from_word(text, at) ? 0 : 1;
    case ROW_ID:
    case ROW_WRITER:
    case ROW_DIGEST:
    case ROW_CHAIN_DIGEST:
    case ROW_FORM_COUNT:
        break;
    }
    return set_array(at, description->form, text);
}

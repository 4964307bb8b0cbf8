/*
 * chain_row.c - see chain_row.h.
 *
 * The front of the buffer is kept for prev_hash and its newline, which come with the last columns.
 */
#include "sinks/chain_row.h"

#include "protocol/text.h"
#include "protocol/vocabulary.h"

#include <openssl/evp.h>
#include <string.h>

#define PREV_HASH_BYTES 65 /* 64 digits and a newline */
#define TRACE_ID_BYTES  32
#define NUMBER_BYTES    20
#define YEAR_1_US       INT64_C(-62135596800000000)
#define YEAR_10000_US   INT64_C(253402300800000000)
#define UUID_TEXT_BYTES (UUID7_TEXT_BYTES - 1)

static void learn_layout(struct chain_row *row, const struct row_layout *layout)
{
    row->layout = layout;
    row->seq_column = row_find(layout, "seq");
    for (size_t i = 0; i < layout->count; i++)
        row->name_lengths[i] = (unsigned char)strlen(layout->columns[i].name);
}

void chain_row_begin(struct chain_row *row, const struct row_layout *layout)
{
    if (row->layout != layout)
        learn_layout(row, layout);
    row->column = 0;
    row->readable = true;
    row->id[0] = row->writer[0] = row->row_hash[0] = '\0';
    row->seq = 0;
    row->retires = false;
    row->length = PREV_HASH_BYTES;
}

void chain_row_free(struct chain_row *row)
{
    free(row->bytes);
    *row = (struct chain_row){0};
}

const char *chain_row_prev_hash(const struct chain_row *row)
{
    return row->bytes;
}

enum row_form chain_row_form(const struct chain_row *row)
{
    return row->column < row->layout->count ? row->layout->columns[row->column].form
                                            : ROW_FORM_COUNT;
}

/* ---- the buffer --------------------------------------------------------------------------------- */

static int reserve(struct chain_row *row, size_t more)
{
    size_t needed;
    if (!base_add(row->length, more, &needed))
        return -ENOMEM;
    if (needed <= row->capacity)
        return 0;
    size_t capacity = needed + needed / 2 + 1024;
    char *bytes = realloc(row->bytes, capacity);
    if (!bytes)
        return -ENOMEM;
    row->bytes = bytes;
    row->capacity = capacity;
    return 0;
}

/* Where the value of the next column goes, with room for so many bytes and a newline; its name is
 * there. NULL when out of memory. */
static char *begin_value(struct chain_row *row, size_t length)
{
    const char *name = row->layout->columns[row->column].name;
    size_t name_length = row->name_lengths[row->column], needed;
    if (!base_add(length, name_length + 2, &needed) || reserve(row, needed) < 0)
        return NULL;
    char *at = row->bytes + row->length;
    memcpy(at, name, name_length);
    at[name_length] = ':';
    return at + name_length + 1;
}

static int end_value(struct chain_row *row, char *end)
{
    *end++ = '\n';
    row->length = (size_t)(end - row->bytes);
    row->column++;
    return 0;
}

static int put(struct chain_row *row, const char *text, size_t length)
{
    char *at = begin_value(row, length);
    if (!at)
        return -ENOMEM;
    memcpy(at, text, length);
    return end_value(row, at + length);
}

int chain_row_wrong(struct chain_row *row)
{
    row->readable = false;
    row->column++;
    return 0;
}

/* ---- forms -------------------------------------------------------------------------------------- */

/* Eight bytes at a time: the high bit of each byte that is a control character, or not ASCII. */
static uint64_t unusual(uint64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    uint64_t below_space = (bytes - ones * 0x20) & ~bytes;
    uint64_t del = bytes ^ (ones * 0x7f);
    return (below_space | ((del - ones) & ~del) | bytes) & high;
}

static bool is_line(const char *text, size_t length)
{
    uint64_t found = 0, bytes;
    size_t i = 0;
    for (; i + sizeof(bytes) <= length; i += sizeof(bytes)) {
        memcpy(&bytes, text + i, sizeof(bytes));
        found |= unusual(bytes);
    }
    bytes = UINT64_C(0x2020202020202020);
    memcpy(&bytes, text + i, length - i);
    found |= unusual(bytes);
    return found == 0 || (text_is_utf8(text, length) && !text_has_control(text, length));
}

static bool begins_with(const char *text, size_t length, char first)
{
    size_t i = 0;
    while (i < length && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r'))
        i++;
    return i < length && text[i] == first;
}

/* 1 for a lower-case hex digit. */
static const unsigned char hex_digits[256] = {
    ['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1,
    ['8'] = 1, ['9'] = 1, ['a'] = 1, ['b'] = 1, ['c'] = 1, ['d'] = 1, ['e'] = 1, ['f'] = 1,
};

static bool is_hex(const char *text, size_t length)
{
    unsigned char right = 1;
    for (size_t i = 0; i < length; i++)
        right &= hex_digits[(unsigned char)text[i]];
    return right;
}

static bool is_time(const char *text, size_t length)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    bool right = length == sizeof(form) - 1;
    for (size_t i = 0; right && i < length; i++)
        right = form[i] == 'd' ? text[i] >= '0' && text[i] <= '9' : text[i] == form[i];
    return right;
}

static bool is_uuid(const char *text, size_t length)
{
    return length == UUID_TEXT_BYTES && text[8] == '-' && text[13] == '-' && text[18] == '-' &&
           text[23] == '-' && is_hex(text, 8) && is_hex(text + 9, 4) && is_hex(text + 14, 4) &&
           is_hex(text + 19, 4) && is_hex(text + 24, 12);
}

/* Version 7 with the variant of RFC 9562. */
static bool is_version_7(const char *text)
{
    return text[14] == '7' && strchr("89ab", text[19]) != NULL;
}

static bool is_word(enum row_form form, const char *text, size_t length)
{
    enum status status;
    enum reason reason;
    enum event_kind kind;
    char word[32];
    if (length >= sizeof(word))
        return false;
    memcpy(word, text, length);
    word[length] = '\0';
    return form == ROW_STATUS   ? status_from_word(word, &status)
           : form == ROW_REASON ? reason_from_word(word, &reason)
                                : event_kind_from_word(word, &kind);
}

static bool has_form(enum row_form form, const char *text, size_t length)
{
    switch (form) {
    case ROW_LINE:
        return is_line(text, length);
    case ROW_OBJECT:
        return begins_with(text, length, '{');
    case ROW_ARRAY:
        return begins_with(text, length, '[');
    case ROW_TRACE:
        return length == TRACE_ID_BYTES && is_hex(text, length);
    case ROW_TIME:
        return is_time(text, length);
    case ROW_STATUS:
    case ROW_REASON:
    case ROW_KIND:
        return is_word(form, text, length);
    case ROW_ID:
        return is_uuid(text, length) && is_version_7(text);
    case ROW_WRITER:
        return is_uuid(text, length);
    case ROW_DIGEST:
    case ROW_CHAIN_DIGEST:
        return length == DIGEST_HEX_BYTES - 1 && is_hex(text, length);
    case ROW_INTEGER:
    case ROW_BOOL:
    case ROW_FORM_COUNT:
        break;
    }
    return false;
}

/* ---- columns ------------------------------------------------------------------------------------ */

/* The last two: prev_hash goes to the front, row_hash is not part of the bytes. */
static int put_chain_digest(struct chain_row *row, const char *digits)
{
    if (reserve(row, 0) < 0)
        return -ENOMEM;
    if (row->column + 2 == row->layout->count) {
        memcpy(row->bytes, digits, PREV_HASH_BYTES - 1);
        row->bytes[PREV_HASH_BYTES - 1] = '\n';
    } else {
        memcpy(row->row_hash, digits, DIGEST_HEX_BYTES - 1);
        row->row_hash[DIGEST_HEX_BYTES - 1] = '\0';
    }
    row->column++;
    return 0;
}

static void keep(char out[UUID7_TEXT_BYTES], const char *text)
{
    memcpy(out, text, UUID_TEXT_BYTES);
    out[UUID_TEXT_BYTES] = '\0';
}

int chain_row_null(struct chain_row *row)
{
    if (chain_row_form(row) == ROW_FORM_COUNT || !row->layout->columns[row->column].nullable)
        return chain_row_wrong(row);
    char *at = begin_value(row, 0);
    return at ? end_value(row, at - 1) : -ENOMEM; /* without the colon */
}

int chain_row_text(struct chain_row *row, const char *text, size_t length)
{
    static const char retired[] = "partition_retired";
    enum row_form form = chain_row_form(row);
    if (!has_form(form, text, length))
        return chain_row_wrong(row);
    if (form == ROW_CHAIN_DIGEST)
        return put_chain_digest(row, text);
    if (form == ROW_ID)
        keep(row->id, text);
    else if (form == ROW_WRITER)
        keep(row->writer, text);
    else if (form == ROW_KIND)
        row->retires =
            length == sizeof(retired) - 1 && memcmp(text, retired, sizeof(retired) - 1) == 0;
    return put(row, text, length);
}

/* Writes the digits so that they end at `end`; returns where they begin. */
static char *digits_before(char *end, int64_t value)
{
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        *--end = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--end = '-';
    return end;
}

static int put_number(struct chain_row *row, int64_t value)
{
    char digits[NUMBER_BYTES];
    if (value == ROW_NULL)
        return chain_row_wrong(row); /* in a struct it would mean null, which it is not */
    if (row->column == row->seq_column)
        row->seq = value;
    char *first = digits_before(digits + sizeof(digits), value);
    return put(row, first, (size_t)(digits + sizeof(digits) - first));
}

int chain_row_integer(struct chain_row *row, int64_t value)
{
    char time[ROW_TIME_BYTES];
    switch (chain_row_form(row)) {
    case ROW_INTEGER:
        return put_number(row, value);
    case ROW_BOOL:
        if (value != 0 && value != 1)
            break;
        return value ? put(row, "true", 4) : put(row, "false", 5);
    case ROW_TIME:
        if (value < YEAR_1_US || value >= YEAR_10000_US)
            break;
        row_time_text(value, time);
        return put(row, time, ROW_TIME_BYTES - 1);
    default:
        break;
    }
    return chain_row_wrong(row);
}

int chain_row_uuid(struct chain_row *row, const unsigned char bytes[CHAIN_ROW_UUID_BYTES])
{
    static const unsigned char ends[] = {4, 6, 8, 10, 16};
    char text[UUID7_TEXT_BYTES + 1];
    char *at = text;
    size_t from = 0;
    for (size_t i = 0; i < AR_COUNT(ends); i++) {
        text_to_hex(bytes + from, ends[i] - from, at);
        at += 2 * (ends[i] - from);
        *at++ = '-';
        from = ends[i];
    }
    return chain_row_text(row, text, UUID_TEXT_BYTES);
}

int chain_row_digest(struct chain_row *row, const unsigned char bytes[CHAIN_ROW_DIGEST_BYTES])
{
    char digits[DIGEST_HEX_BYTES];
    enum row_form form = chain_row_form(row);
    if (form != ROW_DIGEST && form != ROW_CHAIN_DIGEST)
        return chain_row_wrong(row);
    text_to_hex(bytes, CHAIN_ROW_DIGEST_BYTES, digits);
    return form == ROW_CHAIN_DIGEST ? put_chain_digest(row, digits)
                                    : put(row, digits, DIGEST_HEX_BYTES - 1);
}

/* ---- the hash ----------------------------------------------------------------------------------- */

struct chain_row_hasher {
    EVP_MD *digest;
    EVP_MD_CTX *context;
};

struct chain_row_hasher *chain_row_hasher_new(void)
{
    struct chain_row_hasher *hasher = calloc(1, sizeof(*hasher));
    if (!hasher)
        return NULL;
    hasher->digest = EVP_MD_fetch(NULL, "SHA256", NULL);
    hasher->context = EVP_MD_CTX_new();
    if (hasher->digest && hasher->context &&
        EVP_DigestInit_ex2(hasher->context, hasher->digest, NULL) == 1)
        return hasher;
    chain_row_hasher_free(hasher);
    return NULL;
}

void chain_row_hasher_free(struct chain_row_hasher *hasher)
{
    if (!hasher)
        return;
    EVP_MD_CTX_free(hasher->context);
    EVP_MD_free(hasher->digest);
    free(hasher);
}

int chain_row_check(struct chain_row_hasher *hasher, const struct chain_row *row)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    char digits[2 * EVP_MAX_MD_SIZE + 1];
    unsigned int length = 0;
    if (EVP_DigestInit_ex2(hasher->context, NULL, NULL) != 1 ||
        EVP_DigestUpdate(hasher->context, row->bytes, row->length) != 1 ||
        EVP_DigestFinal_ex(hasher->context, sum, &length) != 1 || length != CHAIN_ROW_DIGEST_BYTES)
        return -EIO;
    text_to_hex(sum, length, digits);
    return strcmp(digits, row->row_hash) == 0 ? 0 : 1;
}

/*
 * json_scan.c - see json_scan.h.
 *
 * Every byte is looked at a fixed number of times, and the only memory is one copy of the text,
 * taken when there is something to overwrite. An overwritten value keeps its length, so that
 * jansson's positions hold for both texts.
 */
#include "protocol/json_scan.h"
#include "protocol/text.h"

#include <string.h>

#define KEY_BYTES         33  /* a tame member name and NUL */
#define NUMBER_MAX_BYTES  256 /* longer than any number that somebody means */
#define REAL_MAX_EXPONENT 308

void json_scan_free(struct json_scan *scan)
{
    free(scan->mended);
    scan->mended = NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The four hex digits at text as a number, or -1. */
static int read_hex4(const char *text)
{
    int value = 0;
    for (size_t i = 0; i < 4; i++) {
        char c = text[i];
        int digit = is_digit(c)              ? c - '0'
                    : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                    : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                             : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The code of a \uXXXX that begins at i in the string of that length, or -1 when there is none. */
static int escape_code(const char *string, size_t length, size_t i)
{
    if (length - i < 6 || string[i] != '\\' || string[i + 1] != 'u')
        return -1;
    return read_hex4(string + i + 2);
}

/* Decodes the key if it is a plain word ([a-z0-9_]{1,32}, possibly written with escapes). */
static bool decode_key(const char *key, size_t length, char out[KEY_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < length; n++) {
        int c = (unsigned char)key[i];
        size_t step = 1;
        if (c == '\\') {
            c = escape_code(key, length, i);
            step = 6;
        }
        bool tame = c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!tame || n == KEY_BYTES - 1)
            return false;
        out[n] = (char)c;
        i += step;
    }
    out[n] = '\0';
    return n > 0;
}

void json_scan_path(const struct json_scan *scan, char path[JSON_PATH_BYTES])
{
    size_t used = 0;
    path[0] = '\0';
    for (size_t i = 0; i < scan->depth; i++) {
        const struct json_scan_level *level = &scan->levels[i];
        char key[KEY_BYTES];
        if (!level->is_object)
            (void)snprintf(key, sizeof(key), "%zu", level->index);
        else if (!level->key || !decode_key(level->key, level->key_length, key))
            return;
        size_t length = strlen(key);
        if (used + 1 + length >= JSON_PATH_BYTES)
            return;
        path[used] = '/';
        memcpy(path + used + 1, key, length + 1);
        used += 1 + length;
    }
}

static struct json_scan_level *top(struct json_scan *scan)
{
    return scan->depth > 0 ? &scan->levels[scan->depth - 1] : NULL;
}

static void note_fault(struct json_scan *scan, enum problem problem, size_t start)
{
    if (scan->fault.problem != PROBLEM_NONE)
        return;
    scan->fault.problem = problem;
    scan->fault_at = start;
    json_scan_path(scan, scan->fault.path);
}

/* Overwrites [start, end) with text and then blanks (or all blanks, with ""). */
static int overwrite(struct json_scan *scan, size_t start, size_t end, const char *with)
{
    if (!scan->mended) {
        scan->mended = malloc(scan->length);
        if (!scan->mended)
            return -ENOMEM;
        memcpy(scan->mended, scan->text, scan->length);
    }
    memset(scan->mended + start, ' ', end - start);
    memcpy(scan->mended + start, with, strlen(with));
    return 0;
}

/* The value that was scanned ends here. */
static void end_value(struct json_scan *scan)
{
    if (scan->depth == 1 && scan->at_id) {
        scan->id_end = scan->at;
        scan->at_id = false;
    }
}

static void begin_value(struct json_scan *scan)
{
    if (scan->depth == 1 && scan->at_id)
        scan->id_start = scan->at;
}

/* ---- strings ------------------------------------------------------------------------------------ */

/* Goes behind the closing quote; *escaped: there are backslashes. */
static void skip_string(struct json_scan *scan, bool *escaped)
{
    *escaped = false;
    for (scan->at++; scan->at < scan->length; scan->at++) {
        char c = scan->text[scan->at];
        if (c == '"') {
            scan->at++;
            return;
        }
        if (c == '\\') {
            *escaped = true;
            scan->at++;
        }
    }
    scan->at = scan->length; /* not closed */
}

/* Does each \uD800..\uDBFF have its \uDC00..\uDFFF, and the other way round? A malformed escape is
 * left to jansson. */
static bool surrogates_pair(const char *string, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (string[i] != '\\')
            continue;
        int code = escape_code(string, length, i);
        if (code >= 0xdc00 && code <= 0xdfff)
            return false;
        if (code >= 0xd800 && code <= 0xdbff) {
            i += 6;
            int low = i < length ? escape_code(string, length, i) : -1;
            if (low < 0xdc00 || low > 0xdfff)
                return false;
        }
        i += code >= 0 ? 5 : 1;
    }
    return true;
}

/* jansson gives up on a member name with NUL in it: turn each into another unknown name. */
static int mend_key(struct json_scan *scan, size_t start, size_t end)
{
    for (size_t i = start; i < end; i++) {
        if (scan->text[i] != '\\')
            continue;
        if (escape_code(scan->text + start, end - start, i - start) == 0) {
            int error = overwrite(scan, i, i + 6, "\\u0001");
            if (error)
                return error;
        }
        i++;
    }
    return 0;
}

static int scan_string(struct json_scan *scan)
{
    struct json_scan_level *level = top(scan);
    bool is_key = level && level->is_object && level->awaits_key;
    size_t start = scan->at + 1;
    bool escaped;
    if (!is_key)
        begin_value(scan);
    skip_string(scan, &escaped);
    size_t end = scan->at > start ? scan->at - 1 : start;
    const char *string = scan->text + start;
    bool sound =
        text_is_utf8(string, end - start) && (!escaped || surrogates_pair(string, end - start));
    if (is_key) {
        level->key = string;
        level->key_length = end - start;
        level->awaits_key = false;
        if (scan->depth == 1) {
            char key[KEY_BYTES];
            scan->outer_members++;
            scan->at_id = decode_key(string, end - start, key) && strcmp(key, "id") == 0;
        }
    } else {
        end_value(scan);
    }
    if (!sound) {
        note_fault(scan, PROBLEM_NOT_UTF8, start);
        return overwrite(scan, start, end, "");
    }
    return is_key && escaped ? mend_key(scan, start, end) : 0;
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* A number by the grammar of RFC 8259, section 6, in pieces; false when it is none. */
struct literal {
    const char *whole, *fraction, *exponent; /* digits; the exponent may have a sign */
    size_t whole_length, fraction_length, exponent_length;
    bool negative;
};

static size_t count_digits(const char *text, const char *end)
{
    const char *p = text;
    while (p < end && is_digit(*p))
        p++;
    return (size_t)(p - text);
}

static bool split_number(const char *p, const char *end, struct literal *out)
{
    *out = (struct literal){0};
    out->negative = p < end && *p == '-';
    p += out->negative;
    out->whole = p;
    out->whole_length = count_digits(p, end);
    p += out->whole_length;
    if (out->whole_length == 0 || (out->whole_length > 1 && out->whole[0] == '0'))
        return false;
    if (p < end && *p == '.') {
        out->fraction = ++p;
        out->fraction_length = count_digits(p, end);
        p += out->fraction_length;
        if (out->fraction_length == 0)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        out->exponent = ++p;
        p += p < end && (*p == '+' || *p == '-');
        size_t digits = count_digits(p, end);
        p += digits;
        out->exponent_length = (size_t)(p - out->exponent);
        if (digits == 0)
            return false;
    }
    return p == end;
}

static bool fits_int64(const struct literal *number)
{
    int64_t value = 0;
    for (size_t i = 0; i < number->whole_length; i++) {
        int digit = number->whole[i] - '0';
        if (!base_mul(value, (int64_t)10, &value) ||
            !base_sub(value, (int64_t)digit, &value)) /* downwards: INT64_MIN is the longer end */
            return false;
    }
    return number->negative || value != INT64_MIN;
}

/* Is it certainly finite as a double? Judged by the power of ten of its first digit that counts:
 * what is 1e308 or more is refused, though a little more would fit. */
static bool fits_double(const struct literal *number)
{
    long exponent = 0;
    for (size_t i = 0; i < number->exponent_length && exponent < 100000; i++)
        if (is_digit(number->exponent[i]))
            exponent = exponent * 10 + (number->exponent[i] - '0');
    if (number->exponent && number->exponent[0] == '-')
        exponent = -exponent;
    size_t leading = 0;
    while (leading < number->whole_length && number->whole[leading] == '0')
        leading++;
    if (leading < number->whole_length)
        return exponent + (long)(number->whole_length - leading) - 1 < REAL_MAX_EXPONENT;
    while (leading - number->whole_length < number->fraction_length &&
           number->fraction[leading - number->whole_length] == '0')
        leading++;
    if (leading - number->whole_length == number->fraction_length)
        return true; /* zero, whatever the exponent */
    return exponent - (long)(leading - number->whole_length) - 1 < REAL_MAX_EXPONENT;
}

static int scan_number(struct json_scan *scan)
{
    size_t start = scan->at;
    begin_value(scan);
    while (scan->at < scan->length &&
           (is_digit(scan->text[scan->at]) || memchr("+-.eE", scan->text[scan->at], 5)))
        scan->at++;
    end_value(scan);
    struct literal number;
    if (!split_number(scan->text + start, scan->text + scan->at, &number))
        return 0; /* jansson's to refuse */
    bool is_real = number.fraction || number.exponent;
    if (scan->at - start <= NUMBER_MAX_BYTES &&
        (is_real ? fits_double(&number) : fits_int64(&number)))
        return 0;
    note_fault(scan, PROBLEM_OUT_OF_RANGE, start);
    return overwrite(scan, start, scan->at, "0");
}

/* ---- structure ---------------------------------------------------------------------------------- */

/* true, false, null, or what jansson will refuse. */
static void scan_word(struct json_scan *scan)
{
    begin_value(scan);
    while (scan->at < scan->length && scan->text[scan->at] >= 'a' && scan->text[scan->at] <= 'z')
        scan->at++;
    end_value(scan);
}

/* Blanks a value that lies too deep. What is inside is not looked at, save for where it ends. */
static int skip_deep(struct json_scan *scan)
{
    size_t start = scan->at;
    size_t open = 0;
    bool escaped;
    do {
        char c = scan->text[scan->at];
        if (c == '"') {
            skip_string(scan, &escaped);
            continue;
        }
        open += c == '{' || c == '[';
        open -= c == '}' || c == ']';
        scan->at++;
    } while (open > 0 && scan->at < scan->length);
    if (open > 0)
        return 0; /* not closed: jansson's to refuse */
    note_fault(scan, PROBLEM_TOO_DEEP, start);
    return overwrite(scan, start, scan->at, "0");
}

static int open_level(struct json_scan *scan, bool is_object)
{
    if (scan->depth == JSON_MAX_DEPTH)
        return skip_deep(scan);
    begin_value(scan);
    scan->levels[scan->depth++] =
        (struct json_scan_level){.is_object = is_object, .awaits_key = is_object};
    scan->at++;
    return 0;
}

static void close_level(struct json_scan *scan)
{
    if (scan->depth > 0)
        scan->depth--;
    scan->at++;
    end_value(scan);
}

static void next_item(struct json_scan *scan)
{
    struct json_scan_level *level = top(scan);
    if (level) {
        level->index++;
        level->awaits_key = level->is_object;
    }
    scan->at++;
}

static int scan_token(struct json_scan *scan)
{
    char c = scan->text[scan->at];
    switch (c) {
    case '{':
    case '[':
        return open_level(scan, c == '{');
    case '}':
    case ']':
        close_level(scan);
        return 0;
    case ',':
        next_item(scan);
        return 0;
    case '"':
        return scan_string(scan);
    default:
        if (c == '-' || is_digit(c))
            return scan_number(scan);
        if (c >= 'a' && c <= 'z')
            scan_word(scan);
        else
            scan->at++; /* white space, ':', or what jansson will refuse */
        return 0;
    }
}

int json_scan_run(struct json_scan *scan, const char *text, size_t length)
{
    *scan = (struct json_scan){.text = text, .length = length};
    while (scan->at < length) {
        int error = scan_token(scan);
        if (error)
            return error;
    }
    return 0;
}

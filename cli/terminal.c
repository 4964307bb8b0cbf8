/*
 * terminal.c - colors, widths, and foreign text that must not drive a terminal.
 *
 * The escaping works on code points, not bytes: C1 controls and direction marks are valid UTF-8 and
 * still drive a terminal or deceive its reader. It does not depend on the locale; only the width of
 * a character does (wcwidth), with one column as the answer where the locale knows nothing.
 */
#include "cli/terminal.h"

#include <langinfo.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <wchar.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MINIMUM 20
#define WIDTH_MAXIMUM 10000
#define ESCAPE_BYTES  12 /* the longest escape: \u{10ffff} and NUL */

static const char *const style_sequences[TERMINAL_STYLE_COUNT] = {
    [TERMINAL_PLAIN] = "",        [TERMINAL_GOOD] = "\033[32m", [TERMINAL_BAD] = "\033[31m",
    [TERMINAL_WARN] = "\033[33m", [TERMINAL_DIM] = "\033[2m",   [TERMINAL_BOLD] = "\033[1m",
};

static bool environment_allows_color(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if (no_color && *no_color)
        return false;
    return term && *term && strcmp(term, "dumb") != 0;
}

static size_t width_of(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= WIDTH_MINIMUM)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    long value = columns ? strtol(columns, &end, 10) : 0;
    if (end && *end == '\0' && value >= WIDTH_MINIMUM && value <= WIDTH_MAXIMUM)
        return (size_t)value;
    return WIDTH_DEFAULT;
}

void terminal_open(struct terminal *terminal, FILE *stream)
{
    int fd = fileno(stream);
    *terminal = (struct terminal){.stream = stream};
    terminal->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    terminal->is_terminal = fd >= 0 && isatty(fd) == 1;
    if (!terminal->is_terminal)
        return;
    terminal->color = environment_allows_color();
    terminal->width = width_of(fd);
}

const char *terminal_begin(const struct terminal *terminal, enum terminal_style style)
{
    return terminal->color && style < TERMINAL_STYLE_COUNT ? style_sequences[style] : "";
}

const char *terminal_end(const struct terminal *terminal, enum terminal_style style)
{
    return terminal->color && style != TERMINAL_PLAIN ? "\033[0m" : "";
}

/* One code point of well-formed UTF-8 (RFC 3629): its bytes, or 0 when it is not. */
static size_t decode(const unsigned char *data, size_t length, uint32_t *point)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = data[0] < 0x80 ? 1 : data[0] >= 0xf0 ? 4 : data[0] >= 0xe0 ? 3 : 2;
    if (bytes == 1) {
        *point = data[0];
        return 1;
    }
    if (data[0] < 0xc2 || data[0] > 0xf4 || length < bytes)
        return 0;
    uint32_t value = data[0] & (0xffu >> (bytes + 1));
    for (size_t i = 1; i < bytes; i++) {
        if ((data[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (data[i] & 0x3fu);
    }
    if (value < smallest[bytes] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    *point = value;
    return bytes;
}

/* Does a terminal act on it, or does it hide or reorder what stands beside it? */
static bool is_unsafe(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point <= 0x9f) || point == 0x061c ||
           (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
           (point >= 0x2060 && point <= 0x206f) || point == 0xfeff ||
           (point >= 0xe0000 && point <= 0xe007f);
}

static size_t append_escape(char *out, uint32_t point)
{
    int length = point < 0x80 ? snprintf(out, ESCAPE_BYTES, "\\x%02x", point)
                              : snprintf(out, ESCAPE_BYTES, "\\u{%x}", point);
    return (size_t)length;
}

/* Escapes into out (room for every byte as an escape) and returns the length. */
static size_t escape_into(char *out, const char *text, size_t length, const char *keep)
{
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        uint32_t point = 0;
        const unsigned char *here = (const unsigned char *)text + at;
        size_t bytes = decode(here, length - at, &point);
        if (bytes == 0) {
            used += (size_t)snprintf(out + used, ESCAPE_BYTES, "\\x%02x", here[0]);
            at++;
            continue;
        }
        if (is_unsafe(point) && !(point != 0 && point < 0x80 && strchr(keep, (int)point))) {
            used += append_escape(out + used, point);
        } else {
            memcpy(out + used, here, bytes);
            used += bytes;
        }
        at += bytes;
    }
    out[used] = '\0';
    return used;
}

/* The most that length bytes become: four a byte (\xNN), ten for two or three (\u{xxxxx}). */
static char *escape_room(size_t length)
{
    size_t room = 0;
    if (!base_mul(length, (size_t)6, &room) || !base_add(room, (size_t)ESCAPE_BYTES, &room))
        return NULL;
    return malloc(room);
}

char *terminal_escape(const char *text, size_t length)
{
    char *out = escape_room(length);
    if (out)
        (void)escape_into(out, text, length, "");
    return out;
}

static size_t point_columns(uint32_t point)
{
    int columns = wcwidth((wchar_t)point);
    return columns < 0 ? 1 : (size_t)columns;
}

size_t terminal_columns(const char *text)
{
    size_t length = strlen(text), columns = 0;
    for (size_t at = 0; at < length;) {
        uint32_t point = 0;
        size_t bytes = decode((const unsigned char *)text + at, length - at, &point);
        columns += bytes ? point_columns(point) : 1;
        at += bytes ? bytes : 1;
    }
    return columns;
}

size_t terminal_fit(const char *text, size_t columns)
{
    size_t length = strlen(text), at = 0, taken = 0;
    while (at < length) {
        uint32_t point = 0;
        size_t bytes = decode((const unsigned char *)text + at, length - at, &point);
        size_t wide = bytes ? point_columns(point) : 1;
        if (taken + wide > columns)
            break;
        taken += wide;
        at += bytes ? bytes : 1;
    }
    return at;
}

static int write_all(FILE *stream, const char *data, size_t length)
{
    errno = 0;
    if (fwrite(data, 1, length, stream) == length && fflush(stream) == 0)
        return 0;
    return errno ? -errno : -EIO;
}

int terminal_write(const struct terminal *terminal, const char *data, size_t length, bool raw)
{
    if (raw || !terminal->is_terminal)
        return write_all(terminal->stream, data, length);
    AR_AUTO_FREE char *escaped = escape_room(length);
    if (!escaped)
        return -ENOMEM;
    return write_all(terminal->stream, escaped, escape_into(escaped, data, length, "\n\t"));
}

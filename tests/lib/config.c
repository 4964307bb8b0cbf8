/*
 * config.c - see config.h. Knows no more of INI than the tests write: [section], key = value.
 */
#include "tests/lib/config.h"

#include "protocol/base.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1024

/* The next line of *text, without its end. False at the end. */
static bool next_line(const char **text, char line[LINE_BYTES])
{
    size_t length = strcspn(*text, "\n");
    if (!**text)
        return false;
    ck_assert_uint_lt(length, LINE_BYTES);
    memcpy(line, *text, length);
    line[length] = '\0';
    *text += length + ((*text)[length] == '\n');
    return true;
}

static void cut_key(char *line)
{
    line[strcspn(line, "= ")] = '\0';
}

/* Have the changes this key in this section (a line "[...]"), or "-" there? */
static bool is_changed(const char *changes, const char *section, const char *key)
{
    char line[LINE_BYTES];
    bool inside = false;
    while (next_line(&changes, line)) {
        if (line[0] == '[') {
            inside = strcmp(line, section) == 0;
            continue;
        }
        cut_key(line);
        if (inside && (strcmp(line, "-") == 0 || (key && strcmp(line, key) == 0)))
            return true;
    }
    return false;
}

static void put(FILE *out, const char *line)
{
    ck_assert_int_ge(fprintf(out, "%s\n", line), 0);
}

static void put_defaults(FILE *out, const char *defaults, const char *changes)
{
    char line[LINE_BYTES], key[LINE_BYTES], section[LINE_BYTES] = "";
    while (next_line(&defaults, line)) {
        if (line[0] == '[')
            memcpy(section, line, sizeof(section));
        memcpy(key, line, sizeof(key));
        cut_key(key);
        if (!is_changed(changes, section, line[0] == '[' ? NULL : key))
            put(out, line);
    }
}

char *config_join(const char *defaults, const char *changes)
{
    char *text = NULL, line[LINE_BYTES];
    size_t length;
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    put_defaults(out, defaults, changes);
    while (next_line(&changes, line))
        if (strcmp(line, "-") != 0)
            put(out, line);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

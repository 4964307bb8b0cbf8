/*
 * config_entries.c - an INI file as a flat list of entries with their lines.
 *
 * inih splits the lines; what it does not tell (line numbers, a line that is too long for it, which
 * lines continue a value) is seen by the reader function that feeds it.
 */
#include "daemon/config_entries.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_MAX_ENTRIES 10000

struct feed {
    FILE *file;
    int line;
    bool continues;
    bool too_long;
    struct config_entries *entries;
    FILE *seen; /* all that was read, for the digest */
    int failed; /* -ENOMEM, or 1 for too many entries */
};

static char *feed_line(char *text, int room, void *context)
{
    struct feed *feed = context;
    if (!fgets(text, room, feed->file))
        return NULL;
    feed->line++;
    (void)fputs(text, feed->seen); /* what goes wrong is seen when it is closed */
    feed->continues = text[0] == ' ' || text[0] == '\t';
    if (!strchr(text, '\n') && !feof(feed->file)) {
        feed->too_long = true;
        return NULL;
    }
    return text;
}

static int append_value(struct config_entry *entry, const char *more)
{
    char *joined;
    if (asprintf(&joined, "%s %s", entry->value, more) < 0)
        return -ENOMEM;
    free(entry->value);
    entry->value = joined;
    return 0;
}

static int add_entry(struct config_entries *entries, const char *section, const char *key,
                     const char *value, int line)
{
    if (entries->count == CONFIG_MAX_ENTRIES)
        return 1;
    struct config_entry *grown =
        reallocarray(entries->items, entries->count + 1, sizeof *entries->items);
    if (!grown)
        return -ENOMEM;
    entries->items = grown;
    struct config_entry *entry = &grown[entries->count++];
    *entry = (struct config_entry){strdup(section), strdup(key), strdup(value), line};
    return entry->section && entry->key && entry->value ? 0 : -ENOMEM;
}

/* Called by inih; 0 marks this line as faulty. */
static int take_entry(void *context, const char *section, const char *key, const char *value)
{
    struct feed *feed = context;
    struct config_entries *entries = feed->entries;
    int rc;
    if (feed->failed)
        return 0;
    if (feed->continues && entries->count > 0)
        rc = append_value(&entries->items[entries->count - 1], value);
    else
        rc = add_entry(entries, section, key, value, feed->line);
    feed->failed = rc;
    return rc == 0;
}

/* Closes the file and gives the digest of what was read of it: 0, -ENOMEM, -EIO. */
static int finish(struct feed *feed, char *const *bytes, const size_t *length)
{
    (void)fclose(feed->file);
    if (fclose(feed->seen) != 0)
        return -ENOMEM;
    return digest_hex(*bytes, *length, feed->entries->sha256);
}

int config_entries_read(const char *path, struct config_entries *out, int *line, const char **what)
{
    AR_AUTO_FREE char *bytes = NULL;
    size_t length = 0;
    struct feed feed = {.entries = out};
    *out = (struct config_entries){0};
    *line = 0;
    *what = "cannot be read";
    feed.file = fopen(path, "re");
    if (!feed.file)
        return 1;
    feed.seen = open_memstream(&bytes, &length);
    if (!feed.seen) {
        (void)fclose(feed.file);
        return -ENOMEM;
    }
    int bad_line = ini_parse_stream(feed_line, &feed, take_entry, &feed);
    bool read_error = ferror(feed.file) != 0;
    if (finish(&feed, &bytes, &length) < 0 || feed.failed < 0 || bad_line < 0) {
        config_entries_free(out);
        return -ENOMEM;
    }
    if (!bad_line && !feed.too_long && !read_error)
        return 0;
    *line = feed.too_long ? feed.line : bad_line;
    if (feed.too_long)
        *what = "line too long: continue it on the next line, which begins with a blank";
    else if (bad_line)
        *what = feed.failed ? "too many entries" : "neither [section], key = value nor # comment";
    config_entries_free(out);
    return 1;
}

void config_entries_free(struct config_entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->items[i].section);
        free(entries->items[i].key);
        free(entries->items[i].value);
    }
    free(entries->items);
    *entries = (struct config_entries){0};
}

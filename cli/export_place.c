/*
 * export_place.c - see export_place.h.
 *
 * A file is read from its beginning, but only the first members of each line are looked at, which an
 * export writes always in the same order: so it is as fast as the disk.
 */
#include "cli/export_place.h"

#include "cli/exit_code.h"
#include "cli/lines.h"
#include "cli/message.h"
#include "cli/terminal.h"

#include <inttypes.h>
#include <string.h>

void export_places_free(struct export_places *places)
{
    free(places->items);
    *places = (struct export_places){0};
}

const struct export_place *export_places_find(struct export_places *places, const char *writer)
{
    if (places->last < places->count && strcmp(places->items[places->last].writer, writer) == 0)
        return &places->items[places->last];
    for (places->last = 0; places->last < places->count; places->last++)
        if (strcmp(places->items[places->last].writer, writer) == 0)
            return &places->items[places->last];
    return NULL;
}

struct export_place *export_places_get(struct export_places *places, const char *writer)
{
    if (export_places_find(places, writer))
        return &places->items[places->last];
    if (places->count == places->capacity) {
        size_t capacity = places->capacity > 0 ? places->capacity * 2 : 16;
        struct export_place *items = reallocarray(places->items, capacity, sizeof(*items));
        if (!items)
            return NULL;
        places->items = items;
        places->capacity = capacity;
    }
    struct export_place *place = &places->items[places->count];
    *place = (struct export_place){0};
    memcpy(place->writer, writer, sizeof(place->writer));
    places->last = places->count++;
    return place;
}

/* ---- from the command line ---------------------------------------------------------------------- */

int export_places_parse(const char *title, const struct text_list *after,
                        struct export_places *places)
{
    for (size_t i = 0; i < after->count; i++) {
        char writer[UUID7_TEXT_BYTES] = "", *end = NULL;
        const char *text = after->items[i];
        size_t length = strlen(text);
        if (length > sizeof(writer))
            memcpy(writer, text, sizeof(writer) - 1);
        const char *digits = length > sizeof(writer) ? text + sizeof(writer) : "";
        errno = 0;
        long long seq = strtoll(digits, &end, 10);
        if (!uuid7_is_uuid(writer) || text[sizeof(writer) - 1] != ':' || digits[0] < '0' ||
            digits[0] > '9' || *end || errno != 0)
            return message_usage(title, "--after takes WRITER:SEQ, a UUID and a number");
        struct export_place *place = export_places_get(places, writer);
        if (!place)
            return message_failure(-ENOMEM, "cannot keep the places");
        place->seq = seq;
    }
    return EXIT_CODE_OK;
}

/* ---- from a file -------------------------------------------------------------------------------- */

/* Steps over a constant text. */
static bool skip(const char **text, const char *what)
{
    size_t length = strlen(what);
    if (strncmp(*text, what, length) != 0)
        return false;
    *text += length;
    return true;
}

static bool take_id(const char **text, char out[UUID7_TEXT_BYTES])
{
    if (strnlen(*text, UUID7_TEXT_BYTES - 1) != UUID7_TEXT_BYTES - 1)
        return false;
    memcpy(out, *text, UUID7_TEXT_BYTES - 1);
    out[UUID7_TEXT_BYTES - 1] = '\0';
    *text += UUID7_TEXT_BYTES - 1;
    return uuid7_is_uuid(out);
}

static bool take_seq(const char **text, int64_t *seq)
{
    char *end;
    if (**text < '1' || **text > '9')
        return false;
    errno = 0;
    *seq = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* A run or an event. 0, 1 it is none, -ENOMEM. */
static int read_row(const char *line, struct export_places *places)
{
    char id[UUID7_TEXT_BYTES], writer[UUID7_TEXT_BYTES];
    int64_t seq = 0;
    if ((!skip(&line, "{\"run\":{\"run_id\":\"") && !skip(&line, "{\"event\":{\"event_id\":\"")) ||
        !take_id(&line, id) || !skip(&line, "\",\"writer\":\"") || !take_id(&line, writer) ||
        !skip(&line, "\",\"seq\":") || !take_seq(&line, &seq))
        return 1;
    struct export_place *place = export_places_get(places, writer);
    if (!place)
        return -ENOMEM;
    place->seq = seq;
    return 0;
}

static int read_checkpoint(const char *line, struct export_places *places)
{
    static const char key_id[] = "\"key_id\":\"";
    char writer[UUID7_TEXT_BYTES], key[DIGEST_HEX_BYTES] = "";
    int64_t seq = 0;
    if (!skip(&line, "{\"checkpoint\":{\"writer\":\"") || !take_id(&line, writer) ||
        !skip(&line, "\",\"seq\":") || !take_seq(&line, &seq) || !(line = strstr(line, key_id)))
        return 1;
    (void)snprintf(key, sizeof(key), "%s", line + sizeof(key_id) - 1);
    struct export_place *place = digest_is_hex(key) ? export_places_get(places, writer) : NULL;
    if (!place)
        return digest_is_hex(key) ? -ENOMEM : 1;
    place->checkpoint_seq = seq;
    memcpy(place->checkpoint_key, key, sizeof(key));
    return 0;
}

static int read_json(const char *line, struct export_places *places)
{
    int rc = read_row(line, places);
    if (rc == 1)
        rc = read_checkpoint(line, places);
    if (rc == 1 && (skip(&line, "{\"key\":{") || skip(&line, "{\"head\":{")))
        rc = 0;
    return rc;
}

static int read_csv(const char *line, int64_t number, struct export_places *places)
{
    char id[UUID7_TEXT_BYTES], writer[UUID7_TEXT_BYTES];
    int64_t seq = 0;
    if (number == 1)
        return skip(&line, "run_id,writer,seq,") ? 0 : 1;
    if (!take_id(&line, id) || !skip(&line, ",") || !take_id(&line, writer) || !skip(&line, ",") ||
        !take_seq(&line, &seq))
        return 1;
    struct export_place *place = export_places_get(places, writer);
    if (!place)
        return -ENOMEM;
    place->seq = seq;
    return 0;
}

static int complain(const char *path, const char *what)
{
    AR_AUTO_FREE char *escaped = terminal_escape(path, strlen(path));
    return message_error(EXIT_CODE_NO_INPUT, "%s: %s", escaped ? escaped : "", what);
}

int export_places_read(const char *path, bool csv, struct export_places *places, int64_t *end)
{
    AR_CLEANUP(lines_close) struct lines lines = {0};
    char what[64];
    int rc = lines_open(path, &lines);
    if (rc < 0)
        return complain(path, strerror(-rc));
    while ((rc = lines_next(&lines)) == 0) {
        rc = csv ? read_csv(lines.text, lines.number, places) : read_json(lines.text, places);
        if (rc < 0)
            return message_failure(rc, "cannot keep the places");
        (void)snprintf(what, sizeof(what), "line %" PRId64 " is not of an export", lines.number);
        if (rc > 0)
            return complain(path, what);
    }
    if (rc < 0)
        return complain(path, strerror(-rc));
    if (rc == LINES_TOO_LONG)
        return complain(path, "a line is too long for an export");
    *end = lines.offset;
    return EXIT_CODE_OK;
}

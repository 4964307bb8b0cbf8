/*
 * checkpoint_file.c - see checkpoint_file.h.
 *
 * A line is read up to a bound that no checkpoint comes near; a longer one is passed over.
 */
#include "cli/checkpoint_file.h"

#include "cli/exit_code.h"
#include "cli/input.h"
#include "cli/message.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <string.h>

#define LINE_BYTES 4096

static void stream_cleanup(FILE **stream)
{
    if (*stream && *stream != stdin)
        (void)fclose(*stream);
}

static int complain(const char *path, const char *what)
{
    AR_AUTO_FREE char *escaped = terminal_escape(path, strlen(path));
    return message_error(EXIT_CODE_NO_INPUT, "%s: %s", escaped ? escaped : "", what);
}

/* Where the checkpoint of a line begins; NULL: it has none. */
static const char *json_of(const char *line)
{
    static const char word[] = "checkpoint {\"";
    if (line[0] == '{' && line[1] == '"')
        return line;
    const char *found = strstr(line, word);
    return found ? found + sizeof(word) - 3 : NULL;
}

/* 0, 1: it is damaged, -ENOMEM */
static int add(struct checkpoint_file *checkpoints, const char *json)
{
    struct fault fault;
    AR_AUTO_JSON json_t *value = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    if (checkpoints->count == checkpoints->capacity) {
        size_t capacity = checkpoints->capacity == 0 ? 64 : checkpoints->capacity * 2;
        struct checkpoint *items = reallocarray(checkpoints->items, capacity, sizeof(*items));
        if (!items)
            return -ENOMEM;
        checkpoints->items = items;
        checkpoints->capacity = capacity;
    }
    if (!value || checkpoint_from_json(value, &checkpoints->items[checkpoints->count], &fault) != 0)
        return 1;
    checkpoints->count++;
    return 0;
}

/* 0 with line and whether it is whole; 1 at the end. */
static int read_line(FILE *stream, char line[LINE_BYTES], bool *whole)
{
    if (!fgets(line, LINE_BYTES, stream))
        return 1;
    *whole = strchr(line, '\n') != NULL || feof(stream);
    int c = 0;
    while (!*whole && c != EOF && c != '\n')
        c = getc(stream);
    return 0;
}

static int read_lines(FILE *stream, const char *path, struct checkpoint_file *checkpoints)
{
    char line[LINE_BYTES], what[64];
    bool whole = true;
    size_t before = checkpoints->count;
    for (size_t number = 1; read_line(stream, line, &whole) == 0; number++) {
        const char *json = whole ? json_of(line) : NULL;
        int rc = json ? add(checkpoints, json) : 0;
        if (rc < 0)
            return message_failure(rc, "cannot keep the checkpoints");
        (void)snprintf(what, sizeof(what), "line %zu is a damaged checkpoint", number);
        if (rc > 0)
            return complain(path, what);
    }
    if (ferror(stream))
        return complain(path, "it cannot be read");
    return checkpoints->count > before ? EXIT_CODE_OK : complain(path, "it holds no checkpoint");
}

int checkpoint_file_read(const char *path, struct checkpoint_file *checkpoints)
{
    AR_CLEANUP(stream_cleanup) FILE *stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (!stream)
        return complain(path, "it cannot be opened");
    return read_lines(stream, path, checkpoints);
}

void checkpoint_file_free(struct checkpoint_file *checkpoints)
{
    free(checkpoints->items);
    *checkpoints = (struct checkpoint_file){0};
}

int checkpoint_file_read_key(const char *path, struct text_list *key_ids)
{
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = NULL;
    AR_CLEANUP(bytes_free) struct bytes pem = {0};
    int code = input_read(path, &pem);
    if (code != EXIT_CODE_OK)
        return code;
    int rc = checkpoint_key_read(pem.data, pem.length, &key);
    if (rc == 1)
        return complain(path, "it is no Ed25519 key in PEM");
    if (rc == 0)
        rc = text_list_add(key_ids, checkpoint_key_id(key));
    return rc == 0 ? EXIT_CODE_OK : message_failure(rc, "cannot keep the key");
}

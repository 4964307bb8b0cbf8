/*
 * input.c - local files that go into a request, and what can be told from a file about its language.
 *
 * Bounded by INPUT_MAX_BYTES, whatever the file says about its size (a pipe says nothing). The
 * languages are guesses for comfort: what there really is, the executors say.
 */
#include "cli/input.h"

#include "cli/exit_code.h"
#include "cli/message.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define CHUNK_BYTES 65536

static const struct {
    const char *extension, *language;
} by_extension[] = {
    {"py", "python"}, {"js", "javascript"}, {"mjs", "javascript"}, {"cjs", "javascript"},
    {"sh", "bash"},   {"bash", "bash"},     {"pl", "perl"},        {"lua", "lua"},
    {"rb", "ruby"},   {"php", "php"},       {"ts", "typescript"},  {"c", "c"},
    {"cpp", "c++"},   {"cc", "c++"},        {"cxx", "c++"},        {"go", "go"},
    {"rs", "rust"},   {"java", "java"},
};

/* A version may follow the name: python3, lua5.4. */
static const struct {
    const char *interpreter, *language;
} by_interpreter[] = {
    {"python", "python"}, {"nodejs", "javascript"}, {"node", "javascript"},
    {"bash", "bash"},     {"sh", "bash"},           {"perl", "perl"},
    {"lua", "lua"},       {"ruby", "ruby"},         {"php", "php"},
};

/* Makes room for CHUNK_BYTES more and the NUL. */
static int grow(struct bytes *bytes, size_t *capacity)
{
    if (bytes->data && *capacity - bytes->length > CHUNK_BYTES)
        return 0;
    size_t larger = *capacity ? *capacity * 2 : CHUNK_BYTES * 2;
    char *data = realloc(bytes->data, larger);
    if (!data)
        return -ENOMEM;
    bytes->data = data;
    *capacity = larger;
    return 0;
}

/* 0, -EFBIG, -errno. */
static int read_all(int fd, struct bytes *out)
{
    size_t capacity = 0;
    for (;;) {
        int rc = grow(out, &capacity);
        if (rc != 0)
            return rc;
        ssize_t got = read(fd, out->data + out->length, CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        out->length += (size_t)got;
        out->data[out->length] = '\0';
        if (got == 0)
            return 0;
        if (out->length > INPUT_MAX_BYTES)
            return -EFBIG;
    }
}

int input_read(const char *path, struct bytes *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    AR_AUTO_CLOSE int fd =
        is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    const char *name = is_stdin ? "standard input" : path;
    if (fd < 0)
        return message_error(EXIT_CODE_NO_INPUT, "cannot open %s: %s", name, strerror(errno));
    *out = (struct bytes){0};
    int rc = read_all(fd, out);
    if (rc == 0)
        return EXIT_CODE_OK;
    bytes_free(out);
    *out = (struct bytes){0};
    return message_error(EXIT_CODE_NO_INPUT, "cannot read %s: %s", name, strerror(-rc));
}

int input_put(json_t *object, const char *text_member, const char *base64_member,
              const struct bytes *bytes)
{
    const char *data = bytes->data ? bytes->data : "";
    if (text_is_utf8(data, bytes->length) && !memchr(data, '\0', bytes->length))
        return json_object_set_new(object, text_member, json_stringn(data, bytes->length)) == 0
                   ? 0
                   : -ENOMEM;
    AR_AUTO_FREE char *base64 = text_base64_encode(data, bytes->length);
    if (!base64 || json_object_set_new(object, base64_member, json_string(base64)) != 0)
        return -ENOMEM;
    return 0;
}

static const char *language_of_extension(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash + 1 : path, '.');
    for (size_t i = 0; dot && i < AR_COUNT(by_extension); i++)
        if (strcmp(dot + 1, by_extension[i].extension) == 0)
            return by_extension[i].language;
    return NULL;
}

/* Does the word name this interpreter, maybe with a version behind? */
static bool is_interpreter(const char *word, size_t length, const char *interpreter)
{
    size_t name = strlen(interpreter);
    if (length < name || strncmp(word, interpreter, name) != 0)
        return false;
    return strspn(word + name, "0123456789.") >= length - name;
}

static const char *language_of_word(const char *word, size_t length)
{
    for (size_t i = 0; i < AR_COUNT(by_interpreter); i++)
        if (is_interpreter(word, length, by_interpreter[i].interpreter))
            return by_interpreter[i].language;
    return NULL;
}

/* "#!/usr/bin/python3 -u" and "#!/usr/bin/env [-S] node": the first word whose last component is an
 * interpreter that we know. */
static const char *language_of_first_line(const struct bytes *code)
{
    if (code->length < 2 || memcmp(code->data, "#!", 2) != 0)
        return NULL;
    const char *at = code->data + 2;
    const char *end = at + strcspn(at, "\n");
    while (at < end) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t\n");
        const char *slash = memrchr(at, '/', length);
        const char *word = slash ? slash + 1 : at;
        const char *language = language_of_word(word, length - (size_t)(word - at));
        if (language)
            return language;
        at += length;
        if (length == 0)
            break;
    }
    return NULL;
}

const char *input_language(const char *path, const struct bytes *code)
{
    const char *language = language_of_extension(path);
    return language ? language : language_of_first_line(code);
}

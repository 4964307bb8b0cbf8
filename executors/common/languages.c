/*
 * languages.c - reads languages.d and turns a language into a command.
 *
 * The files are the operator's, not a client's; they are checked whole all the same, so that a slip
 * in one is told by file and line at the start and not by runs that fail.
 */
#include "executors/common/languages.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ini.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#define SECTION        "language "
#define ENV            "env."
#define MAX_FILE_BYTES 65536
#define MAX_LINE_BYTES 198 /* what the INI reader takes in one piece */
#define MAX_WORDS      64
#define MAX_VARIABLES  16
#define MAX_ETC        4
#define PLACE_FILE     "{file}"
#define PLACE_PROGRAM  "{program}"
#define PLACE_MEMORY   "{memory_mb}"

struct reading {
    struct languages *languages;
    const char *problem; /* of the line at hand */
    int result;          /* 0, 1 or -ENOMEM */
};

static void free_language(struct language *language)
{
    free(language->name);
    free(language->file);
    free(language->sample);
    text_list_free(&language->compile);
    text_list_free(&language->run);
    text_list_free(&language->env);
    text_list_free(&language->etc);
}

void languages_free(struct languages *languages)
{
    for (size_t i = 0; i < languages->count; i++)
        free_language(&languages->items[i]);
    free(languages->items);
    *languages = (struct languages){0};
}

const struct language *languages_find(const struct languages *languages, const char *name)
{
    for (size_t i = 0; i < languages->count; i++)
        if (strcmp(languages->items[i].name, name) == 0)
            return &languages->items[i];
    return NULL;
}

/* ---- words ------------------------------------------------------------------------------------ */

/* Copies one word from *from to word, which has room for it. False when a quote does not close. */
static bool next_word(const char **from, char *word)
{
    char quote = '\0';
    const char *c = *from;
    for (; *c && (quote || (*c != ' ' && *c != '\t')); c++) {
        if (quote && *c == quote)
            quote = '\0';
        else if (!quote && (*c == '\'' || *c == '"'))
            quote = *c;
        else if (*c == '\\' && quote != '\'' && c[1] && (!quote || strchr("\"\\", c[1])))
            *word++ = *++c;
        else
            *word++ = *c;
    }
    *word = '\0';
    *from = c;
    return quote == '\0';
}

int languages_split(const char *command, struct text_list *words)
{
    AR_AUTO_FREE char *word = malloc(strlen(command) + 1);
    if (!word)
        return -ENOMEM;
    *words = (struct text_list){0};
    for (;;) {
        command += strspn(command, " \t");
        if (!*command)
            return 0;
        int result = next_word(&command, word) ? text_list_add(words, word) : 1;
        if (result != 0) {
            text_list_free(words);
            return result;
        }
    }
}

/* The text with every occurrence of place replaced; malloc'd, NULL when out of memory. */
static char *replace(const char *text, const char *place, const char *value)
{
    size_t count = 0;
    for (const char *c = strstr(text, place); c; c = strstr(c + strlen(place), place))
        count++;
    size_t room = strlen(text) + count * strlen(value) + 1;
    char *result = malloc(room);
    if (!result)
        return NULL;
    char *out = result;
    for (const char *c; (c = strstr(text, place)); text = c + strlen(place)) {
        out = mempcpy(out, text, (size_t)(c - text));
        out = mempcpy(out, value, strlen(value));
    }
    memcpy(out, text, strlen(text) + 1);
    return result;
}

/* A text with its placeholders replaced; malloc'd, NULL when out of memory. */
static char *fill(const char *text, const struct languages_places *places)
{
    char memory[24];
    (void)snprintf(memory, sizeof(memory), "%" PRId64, places->memory_mb);
    AR_AUTO_FREE char *with_file = replace(text, PLACE_FILE, places->file);
    AR_AUTO_FREE char *with_paths =
        with_file ? replace(with_file, PLACE_PROGRAM, places->program) : NULL;
    return with_paths ? replace(with_paths, PLACE_MEMORY, memory) : NULL;
}

int64_t languages_memory_mb(const struct limits *limits)
{
    struct sysinfo info;
    int64_t bytes = 0;
    if (limits->has[LIMIT_MEMORY_BYTES])
        bytes = limits->value[LIMIT_MEMORY_BYTES];
    else if (sysinfo(&info) == 0)
        bytes = (int64_t)info.totalram * info.mem_unit;
    return bytes >> 20 > 0 ? bytes >> 20 : 1;
}

void languages_free_vector(char **vector)
{
    for (size_t i = 0; vector && vector[i]; i++)
        free(vector[i]);
    free(vector);
}

char **languages_command(const struct text_list *words, const struct languages_places *places,
                         const struct text_list *args)
{
    size_t arg_count = args ? args->count : 0;
    char **vector = calloc(words->count + arg_count + 1, sizeof(*vector));
    for (size_t i = 0; vector && i < words->count + arg_count; i++) {
        vector[i] = i < words->count ? fill(words->items[i], places)
                                     : strdup(args->items[i - words->count]);
        if (!vector[i]) {
            languages_free_vector(vector);
            return NULL;
        }
    }
    return vector;
}

/* ---- environment ------------------------------------------------------------------------------ */

/* Puts an owned NAME=VALUE (NULL: out of memory) behind the others, or in the place of one with this
 * name. */
static bool put_variable(char **vector, size_t *count, char *variable)
{
    if (!variable)
        return false;
    size_t length = strcspn(variable, "=") + 1;
    size_t at = 0;
    while (at < *count && strncmp(vector[at], variable, length) != 0)
        at++;
    free(vector[at]);
    vector[at] = variable;
    *count += at == *count;
    return true;
}

static char *join_variable(const struct request_variable *variable)
{
    char *text = NULL;
    return asprintf(&text, "%s=%s", variable->name, variable->value) < 0 ? NULL : text;
}

char **languages_environment(const struct language *language, const struct languages_places *places,
                             const char *const *base, const struct spec *spec)
{
    size_t room = 1 + language->env.count + (spec ? spec->env_count : 0), count = 0;
    bool good = true;
    for (size_t i = 0; base[i]; i++)
        room++;
    char **vector = calloc(room, sizeof(*vector));
    if (!vector)
        return NULL;
    for (size_t i = 0; good && base[i]; i++)
        good = put_variable(vector, &count, strdup(base[i]));
    for (size_t i = 0; good && i < language->env.count; i++)
        good = put_variable(vector, &count, fill(language->env.items[i], places));
    for (size_t i = 0; good && spec && i < spec->env_count; i++)
        good = put_variable(vector, &count, join_variable(&spec->env[i]));
    if (good)
        return vector;
    languages_free_vector(vector);
    return NULL;
}

/* ---- /etc ------------------------------------------------------------------------------------- */

static bool is_wanted(const struct languages *languages, const char *name)
{
    for (size_t i = 0; i < languages->count; i++)
        for (size_t j = 0; j < languages->items[i].etc.count; j++)
            if (fnmatch(languages->items[i].etc.items[j], name, FNM_PERIOD) == 0)
                return true;
    return false;
}

int languages_etc(const struct languages *languages, struct text_list *names)
{
    const struct dirent *entry;
    int result = 0;
    *names = (struct text_list){0};
    DIR *folder = opendir("/etc");
    if (!folder)
        return -errno;
    while (result == 0 && (entry = readdir(folder)))
        if (is_wanted(languages, entry->d_name))
            result = text_list_add(names, entry->d_name);
    (void)closedir(folder);
    if (result < 0)
        text_list_free(names);
    return result;
}

/* ---- configuration ---------------------------------------------------------------------------- */

static int fail(struct reading *reading, int result, const char *problem)
{
    if (reading->result == 0) {
        reading->result = result;
        reading->problem = problem;
    }
    return 0; /* for inih: stop counting this line as good */
}

/* The language of a section, made when it is new; NULL with the reason in reading. */
static struct language *section_language(struct reading *reading, const char *section)
{
    struct languages *languages = reading->languages;
    if (strncmp(section, SECTION, strlen(SECTION)) != 0 ||
        !text_is_name(section + strlen(SECTION))) {
        fail(reading, 1, "a section is [language NAME], with a lower-case name");
        return NULL;
    }
    const char *name = section + strlen(SECTION);
    for (size_t i = 0; i < languages->count; i++)
        if (strcmp(languages->items[i].name, name) == 0)
            return &languages->items[i];
    if (languages->count == ENVELOPE_MAX_LANGUAGES) {
        fail(reading, 1, "there are too many languages");
        return NULL;
    }
    struct language *items = reallocarray(languages->items, languages->count + 1, sizeof(*items));
    char *copy = strdup(name);
    if (items)
        languages->items = items;
    if (!items || !copy) {
        free(copy);
        fail(reading, -ENOMEM, "out of memory");
        return NULL;
    }
    languages->items[languages->count] = (struct language){.name = copy};
    return &languages->items[languages->count++];
}

static int set_text(struct reading *reading, char **member, const char *value)
{
    if (*member)
        return fail(reading, 1, "the key is there twice");
    *member = strdup(value);
    return *member ? 1 : fail(reading, -ENOMEM, "out of memory");
}

static int set_words(struct reading *reading, struct text_list *member, const char *value)
{
    if (member->count > 0)
        return fail(reading, 1, "the key is there twice");
    int split = languages_split(value, member);
    if (split < 0)
        return fail(reading, split, "out of memory");
    if (split > 0)
        return fail(reading, 1, "a quote does not close");
    if (member->count == 0 || member->count > MAX_WORDS)
        return fail(reading, 1, "a command has 1 to 64 words");
    if (member->items[0][0] != '/' && strcmp(member->items[0], PLACE_PROGRAM) != 0)
        return fail(reading, 1, "a command begins with an absolute path or {program}");
    return 1;
}

static int add_text(struct reading *reading, struct text_list *member, const char *text)
{
    return text_list_add(member, text) == 0 ? 1 : fail(reading, -ENOMEM, "out of memory");
}

static int set_variable(struct reading *reading, struct text_list *env, const char *name,
                        const char *value)
{
    AR_AUTO_FREE char *text = NULL;
    if (!text_is_identifier(name))
        return fail(reading, 1, "a variable is env.NAME");
    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, strlen(name)) == 0 && env->items[i][strlen(name)] == '=')
            return fail(reading, 1, "the key is there twice");
    if (env->count == MAX_VARIABLES)
        return fail(reading, 1, "a language has at most 16 variables");
    if (asprintf(&text, "%s=%s", name, value) < 0) {
        text = NULL;
        return fail(reading, -ENOMEM, "out of memory");
    }
    return add_text(reading, env, text);
}

/* A name in /etc itself, with * and ? and [...] in it or not; what begins with a dot is no such. */
static bool is_pattern(const char *text)
{
    return text[0] != '\0' && text[0] != '.' && text[0] != '*' && !strchr(text, '/') &&
           strlen(text) < 256;
}

static int set_etc(struct reading *reading, struct text_list *etc, const char *value)
{
    if (etc->count > 0)
        return fail(reading, 1, "the key is there twice");
    int split = languages_split(value, etc);
    if (split < 0)
        return fail(reading, split, "out of memory");
    if (split > 0 || etc->count == 0 || etc->count > MAX_ETC)
        return fail(reading, 1, "etc has 1 to 4 names");
    for (size_t i = 0; i < etc->count; i++)
        if (!is_pattern(etc->items[i]))
            return fail(reading, 1, "etc has plain names in /etc, not beginning with a * or a dot");
    return 1;
}

/* inih calls this for each `key = value`. */
static int take_entry(void *user, const char *section, const char *key, const char *value)
{
    struct reading *reading = user;
    if (reading->result != 0)
        return 1;
    struct language *language = section_language(reading, section);
    if (!language)
        return 0;
    if (strcmp(key, "file") == 0) {
        if (!text_is_relative_path(value) || strchr(value, '/'))
            return fail(reading, 1, "file is a plain file name");
        return set_text(reading, &language->file, value);
    }
    if (strcmp(key, "sample") == 0)
        return set_text(reading, &language->sample, value);
    if (strcmp(key, "compile") == 0)
        return set_words(reading, &language->compile, value);
    if (strcmp(key, "run") == 0)
        return set_words(reading, &language->run, value);
    if (strcmp(key, "etc") == 0)
        return set_etc(reading, &language->etc, value);
    if (strncmp(key, ENV, strlen(ENV)) == 0)
        return set_variable(reading, &language->env, key + strlen(ENV), value);
    return fail(reading, 1, "unknown key (file, compile, run, sample, etc, env.NAME)");
}

/* A line that is longer than the reader takes would be read as two. Its number, or 0. */
static int long_line(const char *text)
{
    int line = 1;
    for (; *text; line++) {
        size_t length = strcspn(text, "\n");
        if (length > MAX_LINE_BYTES)
            return line;
        text += length;
        text += *text == '\n';
    }
    return 0;
}

/* The whole file as a text; 0 with *text owned, 1 when it is too big or no file, -errno. */
static int read_text(int directory, const char *name, char **text)
{
    struct stat status;
    AR_AUTO_CLOSE int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_size > MAX_FILE_BYTES)
        return 1;
    AR_AUTO_FREE char *buffer = malloc(MAX_FILE_BYTES + 1);
    if (!buffer)
        return -ENOMEM;
    size_t length = 0;
    ssize_t got;
    while ((got = read(fd, buffer + length, MAX_FILE_BYTES - length)) > 0)
        length += (size_t)got;
    if (got < 0)
        return -errno;
    buffer[length] = '\0';
    if (strlen(buffer) != length)
        return 1;
    *text = AR_TAKE(buffer);
    return 0;
}

static int set_fault(struct languages_fault *fault, const char *file, int line, const char *problem)
{
    *fault = (struct languages_fault){.line = line, .problem = problem};
    (void)snprintf(fault->file, sizeof(fault->file), "%s", file);
    return 1;
}

/* The languages that came with this file must be whole. */
static const char *incomplete(const struct languages *languages, size_t from)
{
    for (size_t i = from; i < languages->count; i++) {
        const struct language *language = &languages->items[i];
        if (!language->file || language->run.count == 0 || !language->sample)
            return "a language needs file, run and sample";
    }
    return NULL;
}

static int read_file(int directory, const char *name, struct languages *languages,
                     struct languages_fault *fault)
{
    AR_AUTO_FREE char *text = NULL;
    size_t before = languages->count;
    struct reading reading = {.languages = languages};

    int result = read_text(directory, name, &text);
    if (result != 0 || !text)
        return result == -ENOMEM ? result
                                 : set_fault(fault, name, 0, "is not a readable small text file");
    int line = long_line(text);
    if (line > 0)
        return set_fault(fault, name, line, "the line is longer than 198 bytes");
    line = ini_parse_string(text, take_entry, &reading);
    if (reading.result < 0)
        return reading.result;
    if (line != 0)
        return set_fault(fault, name, line > 0 ? line : 0,
                         reading.problem ? reading.problem : "is not `key = value`");
    const char *problem = incomplete(languages, before);
    return problem ? set_fault(fault, name, 0, problem) : 0;
}

static int is_configuration(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".conf") == 0;
}

int languages_read(const char *directory, struct languages *out, struct languages_fault *fault)
{
    struct dirent **entries;
    int result = 0;

    *out = (struct languages){0};
    AR_AUTO_CLOSE int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int count = scandir(directory, &entries, is_configuration, alphasort);
    if (count < 0)
        return -errno;
    for (int i = 0; i < count; i++) {
        if (result == 0)
            result = read_file(fd, entries[i]->d_name, out, fault);
        free(entries[i]);
    }
    free(entries);
    if (result != 0)
        languages_free(out);
    return result;
}

/*
 * config_file.c - the two settings of the daemon's configuration that the command line needs.
 *
 * Read with inih, as the daemon reads it: an indented line continues the value before it, a line that
 * is too long for inih is an error and not a cut value, and so is a second value for a setting.
 */
#include "cli/config_file.h"

#include "build_config.h"

#include <ini.h>
#include <stdio.h>
#include <string.h>

struct reading {
    FILE *file;
    int line;
    bool continues; /* the line that inih has now is indented */
    bool too_long;
    bool out_of_memory;
    struct config_file *config;
};

/* The next line for inih, as fgets() gives it. */
static char *next_line(char *text, int room, void *context)
{
    struct reading *reading = context;
    if (!fgets(text, room, reading->file))
        return NULL;
    reading->line++;
    reading->continues = text[0] == ' ' || text[0] == '\t';
    if (strchr(text, '\n') || feof(reading->file))
        return text;
    reading->too_long = true;
    return NULL;
}

static char *joined(const char *value, const char *more)
{
    char *text = NULL;
    return asprintf(&text, "%s %s", value, more) < 0 ? NULL : text;
}

/* inih: not 0 is fine, 0 is an error of this line. */
static int take(void *context, const char *section, const char *name, const char *value)
{
    struct reading *reading = context;
    char **place = NULL;
    if (strcmp(section, "socket") == 0 && strcmp(name, "path") == 0)
        place = &reading->config->socket_path;
    else if (strcmp(section, "ledger") == 0 && strcmp(name, "url") == 0)
        place = &reading->config->ledger_url;
    if (!place)
        return 1;
    if (*place && !reading->continues)
        return 0;
    char *text = *place ? joined(*place, value) : strdup(value);
    if (!text) {
        reading->out_of_memory = true;
        return 0;
    }
    free(*place);
    *place = text;
    return 1;
}

static int parse(FILE *file, const char *path, struct config_file *out, char *message)
{
    struct reading reading = {.file = file, .config = out};
    int line = ini_parse_stream(next_line, &reading, take, &reading);
    if (reading.out_of_memory || line == -2)
        return -ENOMEM;
    if (line == 0 && !reading.too_long && !ferror(file))
        return 0;
    (void)snprintf(message, CONFIG_FILE_MESSAGE_BYTES, "%s:%d: %s", path,
                   line > 0 ? line : reading.line,
                   line > 0 ? "neither a [section], a setting nor a comment, or set twice"
                            : "the line is too long or cannot be read");
    return 1;
}

int config_file_read(const char *path, struct config_file *out,
                     char message[CONFIG_FILE_MESSAGE_BYTES])
{
    const char *from_environment = getenv("AUDITRUN_CONFIG");
    bool named = path || (from_environment && *from_environment);
    if (!path)
        path = named ? from_environment : AR_CONFIG_FILE;
    *out = (struct config_file){0};
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT && !named)
        return 0;
    if (!file) {
        (void)snprintf(message, CONFIG_FILE_MESSAGE_BYTES, "cannot read the configuration %s: %s",
                       path, strerror(errno));
        return 1;
    }
    int rc = parse(file, path, out, message);
    (void)fclose(file);
    if (rc != 0)
        config_file_free(out);
    return rc;
}

void config_file_free(struct config_file *config)
{
    free(config->socket_path);
    free(config->ledger_url);
    *config = (struct config_file){0};
}

static int copy(const char *text, char **out)
{
    *out = strdup(text);
    return *out ? 0 : -ENOMEM;
}

int config_file_socket(const char *option, const char *config_path, char **out,
                       char message[CONFIG_FILE_MESSAGE_BYTES])
{
    const char *from_environment = getenv("AUDITRUN_SOCKET");
    if (!option && from_environment && *from_environment)
        option = from_environment;
    if (option)
        return copy(option, out);
    struct config_file config;
    int rc = config_file_read(config_path, &config, message);
    if (rc != 0)
        return rc;
    *out = AR_TAKE(config.socket_path);
    config_file_free(&config);
    return *out ? 0 : copy(AR_RUN_DIR "/auditrun.sock", out);
}

int config_file_ledger(const char *option, const char *config_path, char **out,
                       char message[CONFIG_FILE_MESSAGE_BYTES])
{
    if (option)
        return copy(option, out);
    struct config_file config;
    int rc = config_file_read(config_path, &config, message);
    if (rc != 0)
        return rc;
    *out = AR_TAKE(config.ledger_url);
    config_file_free(&config);
    if (*out)
        return 0;
    (void)snprintf(message, CONFIG_FILE_MESSAGE_BYTES,
                   "which ledger? Name it with --ledger URL, or the configuration file that has it "
                   "([ledger] url) with --config FILE");
    return 1;
}

/*
 * log.c - lines for an operator: to systemd's journal, or on standard error.
 *
 * A line is put together in a buffer and written at once, so that lines of the daemon's threads do
 * not mix. A log that cannot be written is not an error of the daemon: losing a line must not lose a
 * record.
 */
#include "daemon/log.h"

#include "daemon/log_journal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOG_LINE_BYTES 1024

static struct {
    enum log_level threshold;
    bool under_manager; /* standard error is a stream into the journal */
    int journal;        /* its own socket; -1: none */
} state = {.threshold = LOG_LEVEL_INFO, .journal = -1};

static const struct {
    const char *word;
    int priority; /* syslog(3) */
} levels[] = {
    [LOG_LEVEL_ERROR] = {"error", 3},
    [LOG_LEVEL_WARNING] = {"warning", 4},
    [LOG_LEVEL_INFO] = {"info", 6},
    [LOG_LEVEL_DEBUG] = {"debug", 7},
};

bool log_level_from_word(const char *word, enum log_level *out)
{
    for (size_t i = 0; i < AR_COUNT(levels); i++) {
        if (strcmp(word, levels[i].word) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

void log_set_level(enum log_level level)
{
    state.threshold = level;
}

bool log_enabled(enum log_level level)
{
    return level <= state.threshold;
}

void log_open(const char *journal)
{
    base_close(&state.journal);
    state.under_manager = log_journal_is_stream(STDERR_FILENO);
    state.journal = state.under_manager ? log_journal_connect(journal) : -1;
}

struct text {
    char bytes[LOG_LINE_BYTES];
    size_t length;
};

static void add_arguments(struct text *text, const char *format, va_list arguments) AR_PRINTF(2, 0);

/* What does not fit is cut off; one byte stays for the end of the line. */
static void add_arguments(struct text *text, const char *format, va_list arguments)
{
    size_t room = sizeof text->bytes - 1 - text->length;
    int n = vsnprintf(text->bytes + text->length, room, format, arguments);
    if (n > 0)
        text->length += (size_t)n < room ? (size_t)n : room - 1;
}

static void add(struct text *text, const char *format, ...) AR_PRINTF(2, 3);

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_arguments(text, format, arguments);
    va_end(arguments);
}

static void add_prefix(struct text *text, enum log_level level)
{
    struct timespec now;
    struct tm tm;
    char seconds[32];
    if (state.under_manager) {
        add(text, "<%d>", levels[level].priority);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &tm);
    add(text, "%s.%03ldZ %s: ", seconds, now.tv_nsec / 1000000, levels[level].word);
}

static void write_line(enum log_level level, const char *message)
{
    struct text line = {.length = 0};
    add_prefix(&line, level);
    add(&line, "%s", message);
    line.bytes[line.length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line.bytes, line.length);
    (void)written;
}

static void write_all(enum log_level level, const struct log_field *fields, size_t count,
                      const char *format, va_list arguments) AR_PRINTF(4, 0);

static void write_all(enum log_level level, const struct log_field *fields, size_t count,
                      const char *format, va_list arguments)
{
    int saved = errno; /* for %m, and for the caller */
    struct text message = {.length = 0};
    if (!log_enabled(level))
        return;
    add_arguments(&message, format, arguments);
    for (size_t i = 0; i < count; i++)
        if (!fields[i].told)
            add(&message, " %s=%s", fields[i].name, fields[i].value);
    message.bytes[message.length] = '\0';
    if (state.journal < 0 ||
        log_journal_send(state.journal, levels[level].priority, message.bytes, fields, count) < 0)
        write_line(level, message.bytes);
    errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_all(level, NULL, 0, format, arguments);
    va_end(arguments);
}

void log_write_fields(enum log_level level, const struct log_field *fields, size_t count,
                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_all(level, fields, count < LOG_MAX_FIELDS ? count : LOG_MAX_FIELDS, format, arguments);
    va_end(arguments);
}

void log_fatal(const char *what)
{
    log_error("broken invariant: %s", what);
    abort();
}

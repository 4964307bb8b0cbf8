/*
 * log.c - lines for an operator, on standard error.
 *
 * A line is put together in a buffer and written at once, so that lines of the daemon's threads do
 * not mix. A log that cannot be written is not an error of the daemon: losing a line must not lose a
 * record.
 */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOG_LINE_BYTES 1024

static enum log_level threshold = LOG_LEVEL_INFO;

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
    threshold = level;
}

bool log_enabled(enum log_level level)
{
    return level <= threshold;
}

static size_t write_prefix(char *line, size_t room, enum log_level level)
{
    if (getenv("JOURNAL_STREAM"))
        return (size_t)snprintf(line, room, "<%d>", levels[level].priority);
    struct timespec now;
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    size_t used = strftime(line, room, "%Y-%m-%dT%H:%M:%S", &tm);
    return used + (size_t)snprintf(line + used, room - used, ".%03ldZ %s: ", now.tv_nsec / 1000000,
                                   levels[level].word);
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    int saved = errno;
    va_list arguments;
    if (!log_enabled(level))
        return;
    size_t used = write_prefix(line, sizeof line - 1, level);
    va_start(arguments, format);
    errno = saved; /* for %m */
    int n = vsnprintf(line + used, sizeof line - 1 - used, format, arguments);
    va_end(arguments);
    if (n > 0)
        used += (size_t)n < sizeof line - 1 - used ? (size_t)n : sizeof line - 2 - used;
    line[used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
    errno = saved;
}

void log_fatal(const char *what)
{
    log_error("broken invariant: %s", what);
    abort();
}

/*
 * log.h - lines for an operator.
 *
 * Under systemd (JOURNAL_STREAM names what standard error is) they go to the journal with fields of their
 * own (log_journal.h), so that `journalctl AUDITRUN_RUN_ID=...` finds all about a run. Where that socket
 * cannot be reached they go to standard error with their level as "<N>" (sd-daemon(3)); elsewhere with
 * the time. Only the daemon's main files log, and an error is logged once, where it is handled. Nothing
 * that a client, code or provider sent ever goes into a line: the arguments are our own words, numbers,
 * run ids and names from the configuration.
 *
 * The level and style are the only state outside main.c: a log that had to be passed everywhere
 * would be in every signature of the daemon.
 */
#ifndef AUDITRUN_DAEMON_LOG_H
#define AUDITRUN_DAEMON_LOG_H

#include "protocol/base.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* A fact beside the text: " name=value" at the end of a line, AUDITRUN_NAME in the journal. */
struct log_field {
    const char *name;  /* lower case, '_' */
    const char *value; /* borrowed */
    bool told;         /* the text has it already */
};
#define LOG_MAX_FIELDS 12

bool log_level_from_word(const char *word, enum log_level *out);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* Looks where lines go. journal: path of the journal's socket. Before it lines go to standard error with
 * the time. */
void log_open(const char *journal);
#define LOG_JOURNAL "/run/systemd/journal/socket"

/* Writes one line; keeps errno. */
void log_write(enum log_level level, const char *format, ...) AR_PRINTF(2, 3);
/* The same with so many fields, at most LOG_MAX_FIELDS. */
void log_write_fields(enum log_level level, const struct log_field *fields, size_t count,
                      const char *format, ...) AR_PRINTF(4, 5);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* About a run, whose id is in the text. */
#define log_run(level, run_id, ...) \
    log_write_fields(level, &(const struct log_field){"run_id", run_id, true}, 1, __VA_ARGS__)

/* For a broken invariant of our own, never for what somebody sent: logs and aborts. */
_Noreturn void log_fatal(const char *what);

#endif

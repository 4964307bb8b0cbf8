/*
 * log.h - lines for an operator, on standard error.
 *
 * Under systemd (JOURNAL_STREAM is set) each line begins with its level as "<N>" (sd-daemon(3)) and
 * has no time; elsewhere with the time. Only the daemon's main files log, and an error is logged
 * once, where it is handled. Nothing that a client, code or provider sent ever goes into a line: the
 * arguments are our own words, numbers, run ids and names from the configuration.
 *
 * The level and style are the only state outside main.c: a log that had to be passed everywhere
 * would be in every signature of the daemon.
 */
#ifndef AUDITRUN_DAEMON_LOG_H
#define AUDITRUN_DAEMON_LOG_H

#include "protocol/base.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

bool log_level_from_word(const char *word, enum log_level *out);
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* Writes one line; keeps errno. */
void log_write(enum log_level level, const char *format, ...) AR_PRINTF(2, 3);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* For a broken invariant of our own, never for what somebody sent: logs and aborts. */
_Noreturn void log_fatal(const char *what);

#endif

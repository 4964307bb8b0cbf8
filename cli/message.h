/*
 * message.h - what the command line says to a person on stderr: one line, "auditrun: ...".
 *
 * A message says what failed, on what, and what to do about it. Text from elsewhere goes through
 * terminal_escape() before it comes here.
 */
#ifndef AUDITRUN_CLI_MESSAGE_H
#define AUDITRUN_CLI_MESSAGE_H

#include "protocol/base.h"

/* Prints the line. Returns code, so that a verb can `return message_error(EXIT_CODE_..., ...)`. */
int message_error(int code, const char *format, ...) AR_PRINTF(2, 3);

/* A wrong command line: the line, and where the help is. verb is "auditrun run". Returns
 * EXIT_CODE_USAGE. */
int message_usage(const char *verb, const char *format, ...) AR_PRINTF(2, 3);

/* Our own failure (negative errno): what was being done and what the system says. Returns
 * EXIT_CODE_SYSTEM. */
int message_failure(int negative_errno, const char *doing);

#endif

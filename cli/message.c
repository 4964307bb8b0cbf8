/*
 * message.c - the only place that writes complaints to stderr.
 *
 * No state: where the text goes and how it begins is the same for every verb.
 */
#include "cli/message.h"

#include "cli/exit_code.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int message_error(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fflush(stdout);
    (void)fputs("auditrun: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    return code;
}

int message_usage(const char *verb, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(stderr, "%s: ", verb);
    (void)vfprintf(stderr, format, arguments);
    (void)fprintf(stderr, "\nTry '%s --help'.\n", verb);
    va_end(arguments);
    return EXIT_CODE_USAGE;
}

int message_failure(int negative_errno, const char *doing)
{
    return message_error(EXIT_CODE_SYSTEM, "%s: %s", doing, strerror(-negative_errno));
}

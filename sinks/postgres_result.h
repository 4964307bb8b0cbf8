/*
 * postgres_result.h - what the blocking users of libpq share: results that are cleared when they go out
 * of scope, and what went wrong as one line.
 */
#ifndef AUDITRUN_SINKS_POSTGRES_RESULT_H
#define AUDITRUN_SINKS_POSTGRES_RESULT_H

#include "protocol/base.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

static inline void postgres_result_cleanup(PGresult **result)
{
    PQclear(*result);
}
#define AUTO_RESULT AR_CLEANUP(postgres_result_cleanup)

/* The first line of a text (NULL: none) as the message, for an operator. */
static inline void postgres_result_say(char *message, size_t bytes, const char *text)
{
    (void)snprintf(message, bytes, "%s", text ? text : "");
    message[strcspn(message, "\n")] = '\0';
}

#endif

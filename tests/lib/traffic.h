/*
 * traffic.h - what went over the wire in a test program, held against the schemas at its end.
 *
 * One file a schema, one value a line, in a folder in /tmp that the processes of all tests share.
 */
#ifndef AUDITRUN_TESTS_LIB_TRAFFIC_H
#define AUDITRUN_TESTS_LIB_TRAFFIC_H

#include "protocol/json.h"

#include <sys/types.h>

/* In main(), before the tests: from now on traffic is kept. */
void traffic_begin(void);
/* A value of protocol/schema/SCHEMA.schema.json, as its text. Nothing before traffic_begin(). */
void traffic_keep(const char *schema, const char *text);
void traffic_keep_value(const char *schema, const json_t *value);
/* In main(), after the tests: runs tests/tools/validate-schema over all, and removes it. 0 when
 * every value is as its schema says; what is not is named on the standard error. */
int traffic_check(void) AR_MUST_CHECK;
/* Gives what is kept, and what will be, to another user, whom this process is about to become. */
void traffic_hand_over(uid_t user);

#endif

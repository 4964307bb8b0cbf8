/*
 * answer.h - the result of a run, told to the person (or script) that asked for it: the code's own
 * output on its own, the files that came back, one line of verdict, the exit code.
 */
#ifndef AUDITRUN_CLI_ANSWER_H
#define AUDITRUN_CLI_ANSWER_H

#include "cli/follow.h"

/* Prints a terminal result, without that output which was printed while it ran, and returns the exit
 * code of the program. */
int answer_print(const struct follow *follow, const json_t *result);

#endif

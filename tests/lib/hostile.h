/*
 * hostile.h - the hostile programs of tests/hostile, and how a run of one must end.
 *
 * tests/hostile/README.md tells what they do and what the keys of programs.json mean. A program that
 * includes or imports "probe" gets that file's text in the place of the line.
 */
#ifndef AUDITRUN_TESTS_LIB_HOSTILE_H
#define AUDITRUN_TESTS_LIB_HOSTILE_H

#include "protocol/json.h"
#include "protocol/text.h"

struct hostile;

/* One program: all of it is borrowed from the list. */
struct hostile_program {
    const char *file, *category, *language;
    size_t times, at_once; /* runs one after the other, and runs at the same time: 1 or more */
    int64_t wall_ms;       /* what it is granted */
    bool distinct_host_uids;
    const json_t *entry;
};

/* Reads the list. Ends the test when it cannot. */
struct hostile *hostile_load(void);
void hostile_free(struct hostile *hostile);
size_t hostile_count(const struct hostile *hostile);
struct hostile_program hostile_at(const struct hostile *hostile, size_t index);

/* Params of a run of it, owned. */
json_t *hostile_params(const struct hostile *hostile, const struct hostile_program *program);

/* Adds a line to *wrong for each thing about this result of a run that took so long (as its client
 * saw it) that must not be. */
void hostile_judge(const struct hostile_program *program, const json_t *result, int64_t took_ms,
                   struct text_list *wrong);

/* Was it ended by the clock, although it had to end by itself? On a machine that is busy with other
 * things that says nothing about the sandbox. */
bool hostile_was_too_slow(const struct hostile_program *program, const json_t *result);

/* Adds a line to a list; ends the test when memory is short. */
void hostile_tell(struct text_list *lines, const char *text, ...) AR_PRINTF(2, 3);
/* Ends the test, with all lines, when there are any; else frees the list. */
void hostile_expect_none(struct text_list *lines);

#endif

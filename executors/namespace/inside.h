/*
 * inside.h - the first process of a sandbox: ours, between the launcher and the code.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_INSIDE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_INSIDE_H

#include "executors/namespace/slot.h"
#include "protocol/spec.h"

/* Everything about one run, made by the launcher; the first process only reads it. Borrowed. */
struct inside_order {
    const struct slot *slot;
    const struct spec *spec;
    const char *code_file; /* its name in /code */
    char **compile;        /* argument vectors ended by NULL; compile is NULL without that step */
    char **run;
    char **base_env; /* of the compiler */
    char **env;      /* of the code */
    int program;     /* instead of run[0], if >= 0: an open executable */
    int streams[4];  /* stdin, stdout, stderr, outputs (-1: none) */
};

/* Is pid 1 of a new pid namespace: builds the sandbox, runs the code in it, ends everything, leaves
 * the result on the slot's board and exits. */
__attribute__((noreturn)) void inside_main(const struct inside_order *order);

#endif

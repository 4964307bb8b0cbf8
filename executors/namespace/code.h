/*
 * code.h - the process of the code, from the first process's point of view.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_CODE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_CODE_H

#include "executors/namespace/order.h"

#define CODE_DATA_PORT \
    3 /* where the code finds its data port, if it has one; also in text: order.c */

struct code {
    struct slot *slot;
    const struct order *order;
    int ruleset;    /* of Landlock; -1: none */
    bool compiling; /* it is the compiler */
};

/* Starts the code behind all its walls, and comes back when it executes. 0 with *pid, or negative with
 * the failure on the slot's board. */
int code_start(const struct code *code, pid_t *pid) AR_MUST_CHECK;

/* Closes our copies of the ends of its pipes and of its data port: they are the code's alone. */
void code_let_go_of_streams(const struct order *order);

#endif

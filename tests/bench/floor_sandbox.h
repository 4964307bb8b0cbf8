/*
 * floor_sandbox.h - the sandbox of the floor (floor.c): what is prepared once, and one launch in it.
 *
 * What fails ends the process with a word on descriptor 2: a measurement without it is none.
 */
#ifndef AUDITRUN_TESTS_BENCH_FLOOR_SANDBOX_H
#define AUDITRUN_TESTS_BENCH_FLOOR_SANDBOX_H

#include "protocol/base.h"

#define FLOOR_SANDBOX_PATH 256

struct floor_sandbox;

/* Borrowed for as long as the sandbox. */
struct floor_sandbox_options {
    const char *folder; /* shown at /program */
    bool shows_usr;     /* the host's /usr too */
    bool ahead;         /* all but exec is built before the clock starts */
    char **command;     /* as seen from inside */
};

/* The template and the filters, in a mount namespace of this process's own from now on. Owned. */
struct floor_sandbox *floor_sandbox_new(const struct floor_sandbox_options *options);
/* NULL is harmless. */
void floor_sandbox_free(struct floor_sandbox *sandbox);

/* Makes this process a worker: in its leaf, in its network namespace. */
void floor_sandbox_enter_worker(void);
/* Takes the leaf of a worker away that has ended. */
void floor_sandbox_forget_worker(pid_t worker);

/* One launch by the worker with this number (from 0, an id on the host each); comes back when all is
 * collected and over. The status of wait4(); *started is set when the sandbox was built ahead. */
int floor_sandbox_launch(const struct floor_sandbox *sandbox, int worker, double *started);

/* Waits for a child, with its usage. The status of wait4(). */
int floor_sandbox_wait(pid_t pid);
double floor_sandbox_now_us(void); /* monotonic */
/* Says what failed, with errno, and ends the process. */
_Noreturn void floor_sandbox_give_up(const char *what);

#endif

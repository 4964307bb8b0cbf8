/*
 * board.h - how a run ended, told by the sandbox's first process to the launcher.
 *
 * A page of memory that the launcher shares with what it forks. The code cannot reach it: executing
 * a program drops the mapping, and the first process, which keeps it, cannot be looked into. It
 * costs no system call, and what was written before a process was killed is still there after.
 * The launcher reads it when the first process has been reaped, never before.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_BOARD_H
#define AUDITRUN_EXECUTORS_NAMESPACE_BOARD_H

#include "executors/namespace/step.h"
#include "protocol/spec.h"

struct board {
    struct failure failure; /* a step of the set-up that failed; STEP_NONE: none did */
    bool done;              /* the rest is complete */
    enum outcome outcome;
    int exit_code;
    int signal;
    enum limit limit;
    int64_t user_us;
    int64_t system_us;
    int64_t memory_peak_bytes;
};

#endif

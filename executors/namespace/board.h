/*
 * board.h - how a run ended, told by the sandbox's first process to the launcher.
 *
 * It lies in the memory that the two share. The code cannot reach it: executing a program leaves that
 * memory, and it cannot be looked into. Telling costs no system call, and what was written before a
 * process was killed is still there after. The launcher reads it when the first process has been
 * reaped, never before.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_BOARD_H
#define AUDITRUN_EXECUTORS_NAMESPACE_BOARD_H

#include "executors/namespace/step.h"
#include "protocol/spec.h"

/* Moments in a sandbox's life, for measuring (slot->timed). */
enum mark {
    MARK_BEGIN,   /* the launcher starts the first process */
    MARK_BUILT,   /* all that does not depend on the run is there */
    MARK_TAKEN,   /* the order of the run has been received and read */
    MARK_FILLED,  /* its files are written, its limits set */
    MARK_STARTED, /* the code (or its compiler) executes */
    MARK_ENDED,   /* it has ended and everything of it is dead */
    MARK_TOLD,    /* usage and outputs are collected */
    MARK_REAPED,  /* the first process is gone, and all namespaces with it */
    MARK_CHECKED, /* the network namespace was found clean */
    MARK_COUNT
};

struct board {
    struct failure failure; /* a step of the set-up that failed; STEP_NONE: none did */
    bool taken;             /* a run was received */
    bool has_port;          /* with a data port */
    bool done;              /* the rest is complete */
    enum outcome outcome;
    int exit_code;
    int signal;
    enum limit limit;
    int64_t user_us;
    int64_t system_us;
    int64_t memory_peak_bytes;
    int64_t at_us[MARK_COUNT]; /* monotonic; 0: not come to */
};

/* Now, in monotonic microseconds. */
int64_t board_now_us(void);
void board_mark(struct board *board, enum mark mark);
/* What lies between the marks, a line each, on descriptor 2. */
void board_tell(const struct board *board);

#endif

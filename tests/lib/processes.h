/*
 * processes.h - what tests ask of the host's processes: who is below whom, and who is still there.
 *
 * A process is told by its pid and its start time, so that a number that was used again is not taken
 * for the one that had it before. One that has ended but was not reaped yet counts as gone.
 */
#ifndef AUDITRUN_TESTS_LIB_PROCESSES_H
#define AUDITRUN_TESTS_LIB_PROCESSES_H

#include "protocol/base.h"

#include <sys/types.h>

struct process {
    pid_t pid, parent;
    unsigned long long start; /* clock ticks since the boot */
};

struct processes {
    struct process *items; /* owned */
    size_t count;
};

/* All that descend from a process, not itself; or only its children. Ends the test on failure. */
struct processes processes_below(pid_t pid);
struct processes processes_children(pid_t pid);
void processes_free(struct processes *list);

bool processes_has(const struct processes *list, pid_t pid);
/* Is there a process of this number now, whichever it is? */
bool processes_runs(pid_t pid);
/* Lives it still? */
bool processes_is_alive(const struct process *process);
/* How many of them live still. */
size_t processes_alive(const struct processes *list);

/* Processes of the host, this one left out, with the marker in their command line or environment. */
size_t processes_marked(const char *marker);

/* Asks until it holds; false when it does not within so many ms. */
bool processes_wait(bool (*holds)(void *context), void *context, int64_t ms) AR_MUST_CHECK;

/* Monotonic, for deadlines. */
int64_t processes_now_ms(void);

#endif

/*
 * progress.h - how far a long walk is, on standard error, and only where a person looks at it.
 */
#ifndef AUDITRUN_CLI_PROGRESS_H
#define AUDITRUN_CLI_PROGRESS_H

#include "cli/terminal.h"

struct progress {
    struct terminal terminal;
    int64_t done, of; /* rows; of < 1: not known */
    bool drawn;
};

void progress_begin(struct progress *progress, int64_t of);
/* So many rows are done, of so many. */
void progress_show(struct progress *progress, int64_t done, int64_t of);
/* One more row; shown every few thousand. */
void progress_step(struct progress *progress);
/* Takes the line away. */
void progress_end(struct progress *progress);

#endif

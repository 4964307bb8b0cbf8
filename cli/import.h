/*
 * import.h - takes the lines of an export into a ledger, each checked before it is sent.
 */
#ifndef AUDITRUN_CLI_IMPORT_H
#define AUDITRUN_CLI_IMPORT_H

#include "cli/lines.h"
#include "cli/progress.h"
#include "protocol/text.h"
#include "sinks/transfer.h"

/* How far a chain is. */
struct import_chain {
    char writer[UUID7_TEXT_BYTES];
    struct sink_head stored; /* in the ledger */
    struct sink_head tail;   /* the same, with the rows that wait to be sent */
    struct sink_head seen;   /* the last row of the file; seq 0: none yet */
    bool unsettled;          /* rows were passed over, and not yet held against the ledger's */
};

/* What came in; zeroed but for the first three members, import_end(). */
struct import {
    const char *url;           /* borrowed */
    struct transfer *transfer; /* to url; borrowed */
    struct lines *lines;       /* borrowed */
    struct progress progress;
    struct import_chain *chains; /* owned */
    size_t chain_count, chain_capacity, last_chain;

    /* rows of one chain that wait to be sent; owned */
    char batch_writer[UUID7_TEXT_BYTES];
    struct record *records[SINK_MAX_BATCH];
    struct chain_event *events[SINK_MAX_BATCH];
    size_t record_count, event_count;
    json_t *keys[TRANSFER_MAX_KEYS]; /* owned */
    size_t key_count;

    int64_t rows_taken, rows_there, checkpoints_taken, keys_taken;
};

/* All lines. Returns an exit code, after the complaint. */
int import_all(struct import *import) AR_MUST_CHECK;
void import_end(struct import *import);

#endif

/*
 * memory.h - a sink in memory, for tests of what stands before a sink: it fails, stalls, refuses and
 * forgets on cue, and keeps to the contract of sink.h in every other respect.
 */
#ifndef AUDITRUN_SINKS_MEMORY_H
#define AUDITRUN_SINKS_MEMORY_H

#include "sinks/sink.h"

/* What happens to the operations that come next. */
enum memory_fault {
    MEMORY_WORKS,
    MEMORY_FAILS,        /* nothing stored or found, said at once */
    MEMORY_STALLS,       /* nothing happens until the deadline, memory_resume() or close */
    MEMORY_LOSES_ANSWER, /* an append is stored, but the answer is SINK_UNKNOWN */
    MEMORY_LOSES_BATCH,  /* an append is not stored, and the answer is SINK_UNKNOWN */
    MEMORY_DELAYS_BATCH, /* the same, but memory_commit_delayed() may still store it */
    MEMORY_FAILS_ROWS,   /* a batch with rows is not stored, the rest works */
    MEMORY_FAILS_CONFIRM /* a batch without rows is not, the rest works */
};

/* 0 with *out owned (sink_close), -ENOMEM. */
int memory_open(struct event_base *base, struct sink **out) AR_MUST_CHECK;

/* From now on, for so many operations of any kind; times < 0: until it is set again. */
void memory_set_fault(struct sink *sink, enum memory_fault fault, int times);
/* A batch with a row of this company is SINK_REFUSED; NULL: none is. */
int memory_refuse_company(struct sink *sink, const char *company) AR_MUST_CHECK;
/* What a server may do after it has lost its client: the last batch that was delayed is stored now, if
 * the head still allows it. True if it was. */
bool memory_commit_delayed(struct sink *sink);
/* Carries out, in order, what was stalled; the fault ends. */
void memory_resume(struct sink *sink);

/* What is stored, in the order of its coming: borrowed, as long as the sink lives; NULL past the
 * end. */
size_t memory_count(const struct sink *sink); /* of records */
const struct record *memory_record(const struct sink *sink, size_t index);
const struct chain_event *memory_event(const struct sink *sink, size_t index);
const struct checkpoint *memory_checkpoint_at(const struct sink *sink, size_t index);
/* Forgets the newest rows and sets the heads of their writers back, as a ledger does that comes back
 * from a backup. */
void memory_forget(struct sink *sink, size_t rows);
/* Number of calls of append so far, whatever became of them. */
size_t memory_appends(const struct sink *sink);

#endif

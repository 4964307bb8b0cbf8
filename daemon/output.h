/*
 * output.h - what a run puts out: read from its pipes, capped, masked, kept for the reply, streamed.
 */
#ifndef AUDITRUN_DAEMON_OUTPUT_H
#define AUDITRUN_DAEMON_OUTPUT_H

#include "daemon/run.h"

struct output;

/* Reads both pipes (taken over, non-blocking; -1 in fds afterwards) into run->output until they end.
 * ended(context) is called when both have, from the loop. 0 with *out owned (output_free), or -errno. */
int output_start(struct run *run, int fds[2], void (*ended)(void *context), void *context,
                 struct output **out) AR_MUST_CHECK;

bool output_has_ended(const struct output *output);

/* Takes what is in the pipes still and closes them. */
void output_finish(struct output *output);

/* What the run has put out, before masking, up to its cap. */
int64_t output_bytes(const struct output *output);

/* NULL is fine. */
void output_free(struct output *output);

/* Masks the secrets of the run in the files that it brought back. 0 or -ENOMEM. */
int output_mask_files(struct run *run) AR_MUST_CHECK;

#endif

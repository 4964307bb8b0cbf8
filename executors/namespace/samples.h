/*
 * samples.h - finds out which languages work here, by running the sample of each in a sandbox.
 *
 * Several run at a time: a helper is a process with a slot of its own, which takes one language
 * after the other until none is left. Helpers are forked early, while the caller is still what it
 * was started as, and wait until samples_run(). They end with the caller.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_SAMPLES_H
#define AUDITRUN_EXECUTORS_NAMESPACE_SAMPLES_H

#include "executors/common/languages.h"
#include "executors/namespace/slot.h"

#define SAMPLES_VERSION_BYTES 128 /* of printable ASCII */

struct samples;

/* Looks which compilers and runtimes are there at all, and forks helpers for those. To be called
 * before slot_enter(). languages and options->etc are borrowed until samples_end(). 0 with *out
 * owned, or -errno. */
int samples_start(const struct slot_options *options, const struct languages *languages,
                  struct samples **out) AR_MUST_CHECK;

/* Runs the samples until all are through or left_ms are over; what is not through by then is too
 * slow. 0, or negative: a helper could not do its work. */
int samples_run(struct samples *samples, int64_t left_ms) AR_MUST_CHECK;

/* What came of a language, by its index: LANGUAGE_OK with *version, the first line that the sample
 * printed as far as it is printable (borrowed), or why not. */
enum language_problem samples_result(const struct samples *samples, size_t index,
                                     const char **version);

/* Ends the helpers and frees everything. NULL is harmless. */
void samples_end(struct samples *samples);

#endif

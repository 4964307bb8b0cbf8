/*
 * probe.h - the verb `capabilities`: what this executor can enforce here, proved by trying it.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_PROBE_H
#define AUDITRUN_EXECUTORS_NAMESPACE_PROBE_H

#include "executors/common/languages.h"
#include "executors/namespace/slot.h"

/* Tries sandboxes, attacks them from inside, runs the sample of every language, and prints the
 * envelope on descriptor 1. 0, or negative: no sandbox that holds can be made here, told in one line
 * on descriptor 2. */
int probe_print(const struct slot_options *options,
                const struct languages *languages) AR_MUST_CHECK;

#endif

/*
 * provider.h - the verb `serve`: one run after the other, each in a fresh sandbox.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_PROVIDER_H
#define AUDITRUN_EXECUTORS_NAMESPACE_PROVIDER_H

#include "executors/common/languages.h"
#include "executors/namespace/slot.h"

/* Serves runs on descriptor 3 until it ends. 0, or negative: what went wrong is told on
 * descriptor 2. */
int provider_serve(const struct slot_options *options,
                   const struct languages *languages) AR_MUST_CHECK;

#endif

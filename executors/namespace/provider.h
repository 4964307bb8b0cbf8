/*
 * provider.h - the verb `serve`: one run after the other, each in a fresh sandbox.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_PROVIDER_H
#define AUDITRUN_EXECUTORS_NAMESPACE_PROVIDER_H

#include "executors/common/languages.h"
#include "executors/namespace/sandbox.h"

/* Makes the order of a run from its spec. streams: as in struct inside_order, borrowed. 0 with *order
 * owned (provider_free_order()); negative with *failure set. */
int provider_make_order(const struct slot *slot, const struct languages *languages,
                        const struct spec *spec, const int streams[4], struct inside_order *order,
                        struct failure *failure) AR_MUST_CHECK;
void provider_free_order(struct inside_order *order);

/* Serves runs on descriptor 3 until it ends. 0, or negative: what went wrong is told on
 * descriptor 2. */
int provider_serve(const struct slot_options *options,
                   const struct languages *languages) AR_MUST_CHECK;

#endif

/*
 * order.h - everything about one run, as its sandbox needs it.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_ORDER_H
#define AUDITRUN_EXECUTORS_NAMESPACE_ORDER_H

#include "executors/common/languages.h"
#include "executors/namespace/slot.h"
#include "protocol/spec.h"

struct order {
    struct spec *spec;     /* owned */
    const char *code_file; /* its name in /code; borrowed from the languages */
    char **compile;        /* argument vectors ended by NULL; compile is NULL without that step */
    char **run;
    char **base_env; /* of the compiler; NULL likewise */
    char **env;      /* of the code */
    int program;     /* instead of run[0], if >= 0: an open executable, borrowed */
    int streams[4];  /* stdin, stdout, stderr, outputs (-1: none); borrowed */
};

/* An empty one, which order_free() takes. */
void order_init(struct order *order);

/* Makes the order of a run from its spec, which it takes over in any case. A run that is granted
 * anything that the envelope does not have is refused. 0, or negative with *failure set (then
 * order_free() all the same). */
int order_make(struct order *order, const struct slot *slot, const struct languages *languages,
               struct spec *spec, struct failure *failure) AR_MUST_CHECK;
void order_free(struct order *order);

#endif

/*
 * order.h - everything about one run, as its sandbox needs it.
 *
 * Values of secrets are in two places of it, the vault and the last variables of the environment. Both
 * are wiped as soon as nobody needs them any more: order_wipe().
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_ORDER_H
#define AUDITRUN_EXECUTORS_NAMESPACE_ORDER_H

#include "executors/common/languages.h"
#include "executors/namespace/slot.h"
#include "executors/namespace/vault.h"
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
    int data_port;   /* the code's end; -1: none; borrowed */
    int secrets;     /* a memory file (vault.h) until it has been mapped; -1: none; borrowed */
    int trees[SPEC_MAX_PATHS]; /* detached mounts, one for each path of the grant; borrowed */
    size_t tree_count;
    struct vault vault;
    size_t secret_variables; /* so many of env, at its end, hold secrets */
};

/* An empty one, which order_free() takes. */
void order_init(struct order *order);

/* Makes the order of a run from its spec, which it takes over in any case, and from the descriptors
 * above, which are set already. A run that is granted anything that the slot is not for, or that has
 * other descriptors than its grant, is refused. 0, or negative with *failure set (then
 * order_free() all the same). */
int order_make(struct order *order, const struct slot *slot, const struct languages *languages,
               struct spec *spec, struct failure *failure) AR_MUST_CHECK;

/* The same for a program of ours (open, borrowed), with these words as its arguments (owned). */
int order_make_own(struct order *order, const struct slot *slot, int program, char **words,
                   struct spec *spec, struct failure *failure) AR_MUST_CHECK;

/* Wipes the values of secrets that are still in our memory. */
void order_wipe(struct order *order);
void order_free(struct order *order);

#endif

/*
 * follow.h - the output of a run while it runs (auditrun run --stream).
 *
 * The daemon may leave out what the caller does not read fast enough, and tells each piece's offset.
 * What came without a gap is printed; behind a gap nothing more is, until the result has the whole.
 */
#ifndef AUDITRUN_CLI_FOLLOW_H
#define AUDITRUN_CLI_FOLLOW_H

#include "cli/order.h"

struct follow_part {
    size_t printed; /* so many bytes, from the first */
    char held[4];   /* behind them: the beginning of a character */
    size_t held_count;
    bool lost; /* there is a gap, or it cannot be written */
};

/* Zeroed but for the order: nothing has come. */
struct follow {
    const struct order *order;    /* borrowed */
    struct follow_part output[2]; /* stdout, stderr */
};

/* A notification of the daemon (a client_notice_fn; the context is a struct follow). */
void follow_take(void *context, const char *method, const json_t *params);

/* The bytes of {"text"} or {"base64"}: 0 with *out owned, 1 when it is neither, -ENOMEM. */
int follow_decode(const json_t *content, struct bytes *out) AR_MUST_CHECK;

#endif

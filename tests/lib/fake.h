/*
 * fake.h - daemons with executors of the fake provider (tests/tools/fake_provider.c): one executor a
 * mode, under the mode's name.
 */
#ifndef AUDITRUN_TESTS_LIB_FAKE_H
#define AUDITRUN_TESTS_LIB_FAKE_H

#include "tests/lib/daemon.h"

/* The configuration of executors of these modes (NULL at the end), each with so many slots, instead of
 * the namespace executor, and more of it (NULL: none). malloc'd. */
char *fake_config(const char *const *modes, int slots, const char *more);
/* A daemon with them. */
struct daemon *fake_daemon(const char *const *modes, int slots, const char *more);

/* Params of a run of this code on that executor; more as in client_params(). Owned. */
json_t *fake_params(const char *mode, const char *code, const char *more);
/* Runs it: the result, owned. */
json_t *fake_run(struct client *client, const char *mode, const char *code, const char *more);
/* Runs it and asserts how it ends, in the answer and in the ledger of the daemon. */
void fake_expect(const struct daemon *daemon, struct client *client, const char *mode,
                 const char *code, const char *more, const char *status, const char *reason);

#endif

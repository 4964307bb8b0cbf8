/*
 * gifts.h - runs of the namespace executor with what a grant can give: a data port, secrets, a network,
 * host paths. For Check programs: what is not as it must be fails the test.
 */
#ifndef AUDITRUN_TESTS_LIB_GIFTS_H
#define AUDITRUN_TESTS_LIB_GIFTS_H

#include "tests/lib/executor.h"

#define GIFTS_SLOT     "64"
#define GIFTS_UID_BASE "210000"
#define GIFTS_UID      210064 /* of the slot, on the host */
#define GIFTS_VALUE    "c4n4ry-of-a-secret"

/* Before anything else, in main(). */
void gifts_find_program(void);

struct text_list gifts_list(char **items, size_t count);
struct request gifts_request(const char *language, const char *code);
/* The same with the network mode open. */
struct request gifts_network_request(const char *language, const char *code);
/* A provider that is ready, and whose runs reach this (AUDITRUN_REACH). */
struct executor gifts_start(const char *reach);
/* The same that reaches nothing, with this as its only section of a language. */
struct executor gifts_start_language(const char *section);
/* Bytes as a text, "" for none. */
const char *gifts_text(const struct bytes *bytes);

/* Does a run, and checks its end (with exit code 0, if it exits) and what it printed. *listener (may be
 * NULL): as it was handed over, owned, or -1. */
void gifts_expect(struct executor *executor, const struct request *request,
                  const struct executor_gifts *gifts, enum outcome outcome, const char *out,
                  int *listener);
/* Is this the listener of docs/executors.md? */
void gifts_expect_listener(int listener);

/* Grants a method of the data API; the secrets BILLING_KEY and TOKEN, the second as a variable too. */
void gifts_grant_port(struct request *request);
void gifts_grant_secrets(struct request *request);
/* A memory file with these two, owned: GIFTS_VALUE, and this value. */
int gifts_secrets(const char *value, size_t length);
/* Is there nothing but zeros in it? */
void gifts_expect_wiped(int fd);

#endif

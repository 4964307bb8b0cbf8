/*
 * internet.h - a network for a test: the test's process, and what it starts, gets a network namespace of
 * its own, with one way out to another one, where tests/tools/internet.py serves names and pages.
 *
 * The host's own network is not touched. Needs root and iproute2.
 */
#ifndef AUDITRUN_TESTS_LIB_INTERNET_H
#define AUDITRUN_TESTS_LIB_INTERNET_H

#include "protocol/base.h"

#define INTERNET_CONFIG "[network]\nnameservers = 10.9.0.2\nconnect_timeout = 2s\n"

struct internet;

/* Moves this process into its namespace and waits until the other one serves. Its certificate is for
 * ok.t.test and other.t.test. Ends the test when that is not possible. */
struct internet *internet_start(void);
/* The authority that signed the servers' certificate, as PEM text; malloc'd. */
char *internet_authority(const struct internet *internet);
/* What was noted ("questions", "requests"), malloc'd; "" when there is nothing. */
char *internet_notes(const struct internet *internet, const char *name);
void internet_end(struct internet *internet);

#endif

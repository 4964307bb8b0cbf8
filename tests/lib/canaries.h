/*
 * canaries.h - what lies on the host for hostile programs to find: none of it may be seen, reached,
 * stopped or ended from a sandbox.
 *
 * A process with the mark in its arguments and environment that runs, where that can be had, as the
 * very user that the sandbox of the first slot is on the host; files of another tenant; listening
 * sockets at loopback, at an abstract name and in folders; the mark in an environment variable and in
 * an open descriptor of the daemon (canaries_environment() and canaries_lend()).
 */
#ifndef AUDITRUN_TESTS_LIB_CANARIES_H
#define AUDITRUN_TESTS_LIB_CANARIES_H

#include "protocol/text.h"

#include <sys/types.h>

struct canaries;

/* uid: whose the process is, when we are root. Ends the test when it cannot. */
struct canaries *canaries_start(uid_t uid);
/* Takes all of it away. */
void canaries_end(struct canaries *canaries);

/* NAME=VALUE for the daemon, with a NULL behind it; borrowed. */
const char *const *canaries_environment(const struct canaries *canaries);
/* Opens the descriptor that what is started next inherits; canaries_take_back() closes it. */
void canaries_lend(struct canaries *canaries);
void canaries_take_back(struct canaries *canaries);

/* Adds a line to *wrong for each one that was touched. */
void canaries_judge(struct canaries *canaries, struct text_list *wrong);

#endif

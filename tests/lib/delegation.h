/*
 * delegation.h - a control group of version 2 for a test that needs one to itself.
 *
 * In version 2 a daemon can use the group in which it is started only if nobody else is in it. Where
 * AUDITRUN_TEST_CGROUP names a folder of version 2 whose groups below belong to the tests (as
 * tests/vm/run makes one), each daemon is started in a new group there. Without it, nothing is done.
 */
#ifndef AUDITRUN_TESTS_LIB_DELEGATION_H
#define AUDITRUN_TESTS_LIB_DELEGATION_H

#include "protocol/base.h"

#include <sys/types.h>

/* Moves the calling process into a new group of its own. False when that fails. */
bool delegation_enter(void) AR_MUST_CHECK;
/* The path of the group that a process made for itself (as "GROUP/name"): malloc'd, or NULL when there
 * is no such folder for tests. */
char *delegation_path(pid_t pid, const char *name);
/* Removes the group of a process that has ended. */
void delegation_remove(pid_t pid);

#endif

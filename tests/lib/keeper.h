/*
 * keeper.h - clears away what a daemon of a test leaves, also when the test fails or is killed.
 *
 * A small process in a session of its own, which is told of each daemon that is started and waits for
 * the test's end. keeper_end() does the same work when the test has gone well.
 */
#ifndef AUDITRUN_TESTS_LIB_KEEPER_H
#define AUDITRUN_TESTS_LIB_KEEPER_H

#include "protocol/base.h"

#include <sys/types.h>

struct keeper;

/* Keeps a folder, which is removed at the end. */
struct keeper *keeper_start(const char *folder);
/* A daemon has been started, as a child of the test that dies with it. */
void keeper_watch(struct keeper *keeper, pid_t pid);
/* How many control groups of the daemons that were watched are there. */
size_t keeper_group_count(const struct keeper *keeper);
/* Removes the groups and the folder, in silence. */
void keeper_end(struct keeper *keeper);

/* The name of the program that a process runs, malloc'd; NULL when it is gone. */
char *keeper_program_of(pid_t pid);

#endif

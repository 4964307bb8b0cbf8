/*
 * host.h - what code that got out, or a daemon that forgot something, would leave on the host.
 *
 * A look is a list of lines, one a thing: mounts of our mount namespace, System V and POSIX IPC, files
 * with the names that hostile programs give, core files, the host's name. Things of other users of the
 * host who are known by name are not in it. What has come between two looks is what is left.
 */
#ifndef AUDITRUN_TESTS_LIB_HOST_H
#define AUDITRUN_TESTS_LIB_HOST_H

#include "protocol/text.h"
#include "tests/lib/daemon.h"

struct text_list host_look(void);
/* Adds a line to *wrong for each thing that has come since, and does not go within two seconds; and
 * one when the host's clock was set. */
void host_compare(const struct text_list *before, struct text_list *wrong);

/* The same for what is below a daemon that has no run: it must have at most so many providers, each
 * with at most one sandbox that was built ahead; its control groups hold nobody else, and there is at
 * most one group a provider in each hierarchy. Two seconds are given. */
void host_judge_daemon(const struct daemon *daemon, size_t slots, struct text_list *wrong);

/* How many different namespaces of a kind ("net", "mnt"...) the processes below the daemon are in or
 * hold open, those of this process left out. */
size_t host_namespaces(const struct daemon *daemon, const char *kind);
/* Open descriptors of a process, and the memory that it has in kB. */
size_t host_descriptors(pid_t pid);
long host_resident_kb(pid_t pid);
/* The uid of a process on the host; -1: gone. */
long host_uid_of(pid_t pid);
/* Has a regular file these bytes (at most 32) anywhere? */
bool host_file_has(const char *path, const char *mark);
/* Has it this name (the first 15 bytes)? */
bool host_has_name(pid_t pid, const char *name);

#endif

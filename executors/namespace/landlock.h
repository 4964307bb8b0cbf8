/*
 * landlock.h - the second wall for paths, TCP, abstract sockets and signals (landlock(7)).
 *
 * It holds by itself, without the mounts and namespaces: where one of those had a hole, the code still
 * could write only to its scratch. A kernel without it leaves us without; the envelope says so.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_LANDLOCK_H
#define AUDITRUN_EXECUTORS_NAMESPACE_LANDLOCK_H

#include "protocol/base.h"

/* The version that the kernel has, as far as this program knows it; 0: none, or switched off. */
int landlock_version(void);

/* A ruleset for the root that the caller lives in: everything can be read and executed, the
 * folders of `writable` (count of them, open) can be written. Owned descriptor, or -errno. */
int landlock_make(int version, const int *writable, size_t count) AR_MUST_CHECK;

/* Lets the ruleset allow writing in one more folder. 0 or -errno. */
int landlock_allow(int ruleset, int version, int folder) AR_MUST_CHECK;

/* The same for a folder or a file of the host, for data only: no programs, devices and sockets. */
int landlock_allow_data(int ruleset, int version, int tree, bool folder) AR_MUST_CHECK;

/* Lets it allow TCP connections to a port. 0 or -errno. */
int landlock_allow_connect(int ruleset, int version, uint16_t port) AR_MUST_CHECK;

/* Lets it allow the execution of one more file, which lies outside of that root. 0 or -errno. */
int landlock_allow_program(int ruleset, int program) AR_MUST_CHECK;

/* From now on the caller, and what it starts, keep to the ruleset. Allocates nothing. 0 or -errno. */
int landlock_enter(int ruleset) AR_MUST_CHECK;

#endif

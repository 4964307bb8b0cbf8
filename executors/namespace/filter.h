/*
 * filter.h - which system calls the code may make: compiled and installed once, in the launcher, whose
 * own calls carry a token (trusted.h).
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_FILTER_H
#define AUDITRUN_EXECUTORS_NAMESPACE_FILTER_H

#include "executors/namespace/reach.h"
#include "executors/namespace/step.h"

#include <linux/filter.h>

/* Two programs that both have to agree: the list of calls, and the conditions on their arguments. */
struct filter {
    struct sock_fprog calls;
    struct sock_fprog conditions;
};

/* Compiles both for the native architecture; calls by any other (i386, x32) kill the process. token:
 * what tells the launcher's calls; reach: what the code may. 0 with *out owned (filter_free()),
 * -ENOMEM or -errno. */
int filter_compile(uint64_t token, unsigned reach, struct filter *out) AR_MUST_CHECK;
void filter_free(struct filter *filter);

/* Puts the caller behind the filter, for good; needs no_new_privs. Only makes system calls.
 * 0 or -errno. */
int filter_install(const struct filter *filter) AR_MUST_CHECK;

/* What the list of calls has, for documents that are held against it: names parted by blanks. Any
 * other call gets ENOSYS. */
enum filter_answer {
    FILTER_ALLOWED,    /* but see the conditions */
    FILTER_REFUSED,    /* EPERM */
    FILTER_UNSUPPORTED /* EOPNOTSUPP */
};
const char *filter_names(enum filter_answer answer);

/* What only the launcher and the first process may call, with the token, by an index from 0; NULL after
 * the last. *error: what the code gets. */
const char *filter_trusted(size_t index, int *error);

/* The condition with this index from 0: the name of the call, NULL after the last. *when says when it
 * holds, *error what the call then gives (0: nothing is done, and success is told), *where in which
 * slots. New namespaces and types of ioctl are not in this list. */
const char *filter_condition(size_t index, const char **when, int *error, const char **where);

#endif

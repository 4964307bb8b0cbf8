/*
 * filter.h - which system calls the code may make: compiled once for a slot, installed for each run.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_FILTER_H
#define AUDITRUN_EXECUTORS_NAMESPACE_FILTER_H

#include "executors/namespace/step.h"

#include <linux/filter.h>

/* Two programs that both have to agree: the list of calls, and the conditions on their arguments. */
struct filter {
    struct sock_fprog calls;
    struct sock_fprog conditions;
};

/* Compiles both for the native architecture; calls by any other (i386, x32) kill the process.
 * 0 with *out owned (filter_free()), -ENOMEM or -errno. */
int filter_compile(struct filter *out) AR_MUST_CHECK;
void filter_free(struct filter *filter);

/* Puts the caller behind the filter, for good; needs no_new_privs. Only makes system calls.
 * 0 or -errno. */
int filter_install(const struct filter *filter) AR_MUST_CHECK;

#endif

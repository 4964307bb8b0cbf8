/*
 * filtered.h - system calls behind the filter of the namespace executor: made in a child, or decided by
 * its programs without making them. For Check programs.
 */
#ifndef AUDITRUN_TESTS_LIB_FILTERED_H
#define AUDITRUN_TESTS_LIB_FILTERED_H

#include "protocol/base.h"

#include <linux/audit.h>

struct sock_fprog;
struct seccomp_data;

#define FILTERED_TOKEN UINT64_C(0x1122334455667788)
#define FILTERED_GARBAGE \
    0x7f00000000L /* in the upper half of an argument, which the kernel cuts off */

#if defined(__x86_64__)
#    define FILTERED_NATIVE  AUDIT_ARCH_X86_64
#    define FILTERED_FOREIGN AUDIT_ARCH_AARCH64
#elif defined(__aarch64__)
#    define FILTERED_NATIVE  AUDIT_ARCH_AARCH64
#    define FILTERED_FOREIGN AUDIT_ARCH_X86_64
#else
#    error "the audit number of this architecture is missing here"
#endif

/* One call and what it must give: an errno, or -1 for success. Arguments cannot do harm if the filter
 * were not there. */
struct filtered_call {
    long number;
    long arguments[5];
    int expected;
};

/* Makes them all behind the filter of a slot with this reach; fails the test when one gives anything
 * else. */
void filtered_expect(unsigned reach, const struct filtered_call *calls, size_t count);

/* What a program says, run as the kernel does. */
uint32_t filtered_decide(const struct sock_fprog *program, const struct seccomp_data *data);

/* Is there seccomp(2)? Valgrind does not know the call. */
bool filtered_is_possible(void);

#endif

/*
 * base.h - what every file may use: attributes, cleanup, checked arithmetic.
 *
 * Return convention of the whole tree: 0 is success; a negative value (-errno) is our own failure
 * and is passed up unchanged; a positive value is an expected outcome that the caller handles.
 * A question returns bool. Everything that can fail is AR_MUST_CHECK.
 */
#ifndef AUDITRUN_PROTOCOL_BASE_H
#define AUDITRUN_PROTOCOL_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define AR_MUST_CHECK          __attribute__((warn_unused_result))
#define AR_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define AR_CLEANUP(function)   __attribute__((cleanup(function)))
#define AR_COUNT(array)        (sizeof(array) / sizeof((array)[0]))

/* Free and close for AR_CLEANUP locals; hand the value over by setting the local to NULL or -1. */
static inline void base_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void base_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define AR_AUTO_FREE  AR_CLEANUP(base_free)
#define AR_AUTO_CLOSE AR_CLEANUP(base_close)

/* Take the value out of an AR_CLEANUP pointer. The place is evaluated once. */
#define AR_TAKE(pointer)                            \
    __extension__({                                 \
        __typeof__(&(pointer)) place_ = &(pointer); \
        __typeof__(pointer) taken_ = *place_;       \
        *place_ = NULL;                             \
        taken_;                                     \
    })

/* Take a descriptor out of an AR_AUTO_CLOSE local. */
static inline int base_take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* Checked arithmetic: true when the result is right, false (and *out undefined) on overflow. */
#define base_add(a, b, out) (!__builtin_add_overflow((a), (b), (out)))
#define base_sub(a, b, out) (!__builtin_sub_overflow((a), (b), (out)))
#define base_mul(a, b, out) (!__builtin_mul_overflow((a), (b), (out)))

#endif

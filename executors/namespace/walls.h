/*
 * walls.h - the walls that a process puts round itself before it becomes the code.
 *
 * Called in a process that shares its memory with the one that started it: nothing here allocates
 * or writes to memory that is not its own; a failure is a number.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_WALLS_H
#define AUDITRUN_EXECUTORS_NAMESPACE_WALLS_H

#include "executors/namespace/slot.h"
#include "protocol/grant.h"

#define WALLS_SCRATCH_BYTES (64ll << 20) /* without a limit in the grant there is still one */

/* The resource limits that are the same for every run: set in the launcher, inherited. 0 or -errno. */
int walls_limit_slot(void) AR_MUST_CHECK;

/* Those from the effective grant. 0 or -errno. */
int walls_limit(const struct slot *slot, const struct limits *limits) AR_MUST_CHECK;

/* Lowers the caller's capabilities to the mask (CAP_TO_MASK), in all three sets; 0 is none. */
int walls_keep_capabilities(uint64_t mask) AR_MUST_CHECK;

/* The size of the scratch file system in bytes. */
int64_t walls_scratch_bytes(const struct limits *limits);

#endif

/*
 * fault.h - places where the crash tests cut the daemon off.
 *
 * Compiled to nothing, unless with AR_FAULT_POINTS: the build of the tests links a second daemon,
 * tests/tools/auditrund-faults, from objects that have them. There AUDITRUND_FAULT=NAME[:N] in the
 * environment kills the daemon (SIGKILL) when it passes the point NAME for the Nth time, and
 * AUDITRUND_FAULT=NAME:stop stops it (SIGSTOP) at the first, and NAME:stall keeps the thread that passes
 * it for FAULT_STALL_MS, as a disk would.
 */
#ifndef AUDITRUN_DAEMON_FAULT_H
#define AUDITRUN_DAEMON_FAULT_H

#include "protocol/base.h"

#define FAULT_STALL_MS 3000

#ifdef AR_FAULT_POINTS

/* Counts a passing of the point; true when it is the one that was asked for. */
bool fault_is_due(const char *name);
/* Does what was asked for. */
void fault_strike(void);

#else

static inline bool fault_is_due(const char *name)
{
    (void)name;
    return false;
}

static inline void fault_strike(void)
{
}

#endif

static inline void fault_point(const char *name)
{
    if (fault_is_due(name))
        fault_strike();
}

#endif

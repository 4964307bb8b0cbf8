/*
 * process.h - what the kernel says of the daemon's own process. Each gives 0 when it cannot be told.
 */
#ifndef AUDITRUN_DAEMON_PROCESS_H
#define AUDITRUN_DAEMON_PROCESS_H

#include <stdint.h>

/* Processor time in user and system mode, without children; microseconds. */
int64_t process_cpu_us(void);
int64_t process_resident_bytes(void);
int64_t process_open_descriptors(void);
int64_t process_max_descriptors(void);

#endif

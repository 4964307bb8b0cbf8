/*
 * sqlite.h - the embedded sink; see sqlite.c. Opened through sink_open().
 */
#ifndef AUDITRUN_SINKS_SQLITE_H
#define AUDITRUN_SINKS_SQLITE_H

#include "sinks/sink.h"

/* 0 with *out owned (sink_close), -errno. The file is opened later, by the threads. */
int sqlite_open(const char *path, struct event_base *base, struct sink **out) AR_MUST_CHECK;

#endif

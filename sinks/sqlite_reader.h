/*
 * sqlite_reader.h - a reader of a SQLite ledger. Opened through reader_open().
 */
#ifndef AUDITRUN_SINKS_SQLITE_READER_H
#define AUDITRUN_SINKS_SQLITE_READER_H

#include "sinks/reader.h"

/* 0 with *out owned (reader_close), 1 when the store says no (message), -errno. */
int sqlite_reader_open(const char *path, struct reader **out,
                       char message[READER_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif

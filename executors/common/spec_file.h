/*
 * spec_file.h - the spec of a run, out of the sealed memory file that it comes in.
 */
#ifndef AUDITRUN_EXECUTORS_COMMON_SPEC_FILE_H
#define AUDITRUN_EXECUTORS_COMMON_SPEC_FILE_H

#include "protocol/spec.h"

/* Reads the spec from fd (borrowed), a memfd of exactly bytes bytes that is sealed against writing,
 * growing and shrinking: so what was checked cannot change. 0 with *out owned
 * (spec_free()); 1 when it is not such a file or no spec; -ENOMEM or -errno. */
int spec_file_read(int fd, size_t bytes, struct spec **out) AR_MUST_CHECK;

#endif

/*
 * files.h - files of the request into the sandbox, and output files back out of it.
 *
 * Every path is resolved below one folder, with no link followed on the way: what the code left
 * there cannot lead anywhere else.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_FILES_H
#define AUDITRUN_EXECUTORS_NAMESPACE_FILES_H

#include "protocol/spec.h"

/* Writes a new file below folder, with the folders that it needs. It can be executed, because the
 * code may start what came with it. 0 or -errno (-ENOSPC: the scratch is full). */
int files_write(uint64_t token, int folder, const char *path,
                const struct bytes *content) AR_MUST_CHECK;

/* Reads the paths below folder and writes the document of the outputs to fd (spec.h). All of them
 * together are at most SPEC_MAX_OUTPUT_BYTES. 0, -ENOMEM or -errno. */
int files_collect(uint64_t token, int folder, const struct text_list *paths, int fd) AR_MUST_CHECK;

#endif

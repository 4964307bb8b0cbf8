/*
 * checkpoint_file.h - checkpoints that were kept outside of the ledger (the daemon's log, a file on
 * another machine), and the public keys that they are checked with.
 */
#ifndef AUDITRUN_CLI_CHECKPOINT_FILE_H
#define AUDITRUN_CLI_CHECKPOINT_FILE_H

#include "protocol/checkpoint.h"
#include "protocol/text.h"

/* Zeroed is empty; checkpoint_file_free(). */
struct checkpoint_file {
    struct checkpoint *items;
    size_t count, capacity;
};

/* Adds the checkpoints of a file ("-": standard input). A checkpoint is a line that is one as JSON, or
 * that ends in one behind the word "checkpoint", as in the daemon's log; other lines are passed over.
 * 0, or an exit code after the complaint: the file cannot be read, holds no checkpoint at all, or one
 * that is damaged. */
int checkpoint_file_read(const char *path, struct checkpoint_file *checkpoints) AR_MUST_CHECK;
void checkpoint_file_free(struct checkpoint_file *checkpoints);

/* Adds the id of the key in a PEM file (public, or private, of which only the public half is used).
 * 0, or an exit code after the complaint. */
int checkpoint_file_read_key(const char *path, struct text_list *key_ids) AR_MUST_CHECK;

#endif

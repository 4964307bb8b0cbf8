/*
 * vault.h - the secrets of one run, from the memory file that they come in to where the code finds them.
 *
 * The file is mapped and never copied, but for the values that are variables, so that there is one
 * place to wipe; and that is wiped as soon as it has been read.
 */
#ifndef AUDITRUN_EXECUTORS_NAMESPACE_VAULT_H
#define AUDITRUN_EXECUTORS_NAMESPACE_VAULT_H

#include "protocol/secret_file.h"
#include "protocol/text.h"

#define VAULT_FOLDER "/run/secrets" /* as the code sees it */

/* All zero: none. */
struct vault {
    char *text; /* mapped, shared with whoever made the file */
    size_t length;
};

/* Maps the memory file fd (borrowed), which must have exactly these names in it. 0 with *vault owned
 * (vault_wipe()); -EPROTO when it is no such file; -errno. */
int vault_open(struct vault *vault, int fd, const struct text_list *names) AR_MUST_CHECK;

/* NAME=VALUE, malloc'd, without one line end at its end, of a secret that is there; who owns it wipes
 * it. 0; 1 when the value has a NUL
 * byte in it; -ENOMEM. */
int vault_variable(const struct vault *vault, const char *name, char **variable) AR_MUST_CHECK;

/* Mounts a small memory file system at VAULT_FOLDER, with a file that only its owner may read for each
 * secret, and makes it read-only. 0 or -errno. */
int vault_show(uint64_t token, const struct vault *vault) AR_MUST_CHECK;

/* Wipes the memory file and lets go of it. Harmless on none. */
void vault_wipe(struct vault *vault);

#endif

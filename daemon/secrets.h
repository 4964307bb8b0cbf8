/*
 * secrets.h - the secrets of one run: found, held, handed over, masked, wiped.
 *
 * They come from systemd credentials or from a directory secrets/COMPANY/NAME. Memory that holds them
 * is kept out of swap and core dumps where the kernel lets us, and wiped before it is freed.
 */
#ifndef AUDITRUN_DAEMON_SECRETS_H
#define AUDITRUN_DAEMON_SECRETS_H

#include "daemon/config.h"
#include "protocol/mask.h"

struct secrets;

/* Reads the secrets of these names (identifiers) for this company (any text: one that is no single
 * path component has no secrets). 0 with *out owned (secrets_free); 1 when some cannot be had, whose
 * names are added to *missing (not there, a link, no regular file, wrong owner or mode, empty, too
 * big); -errno. */
int secrets_load(const struct config_secrets *config, const char *company,
                 const struct text_list *names, struct secrets **out,
                 struct text_list *missing) AR_MUST_CHECK;

/* A memory file in the form of protocol/secret_file.h, for the provider, who wipes it when it has
 * read it. 0 with *fd owned, or -errno. */
int secrets_file(const struct secrets *secrets, int *fd) AR_MUST_CHECK;

/* What has to be masked in what the run puts out; NULL when masking is off. Borrowed. */
const struct mask *secrets_mask(const struct secrets *secrets);

/* For a daemon that has any: keeps its memory out of core files (RLIMIT_CORE of 1: 0 would still let a
 * program of the host collect them, core(5)). 0 or -errno. */
int secrets_guard(const struct config_secrets *config) AR_MUST_CHECK;

/* Wipes and frees. NULL is fine. */
void secrets_free(struct secrets *secrets);

#endif

/*
 * signer.h - signs the head of the chain every so often (protocol/checkpoint.h).
 *
 * A checkpoint goes into the ledger's own table and, as one line of JSON, into the log, where it is
 * out of the database's reach: `auditrun verify --checkpoints` reads it back from there.
 */
#ifndef AUDITRUN_DAEMON_SIGNER_H
#define AUDITRUN_DAEMON_SIGNER_H

#include "daemon/run.h"
#include "protocol/checkpoint.h"

struct signer;

#define SIGNER_MESSAGE_BYTES 256

/* Reads the private key and starts to sign the line's ledger, which must be there. 0 with *out owned;
 * 1 when the key cannot be used (message, for the operator); -errno. */
int signer_open(struct line *line, const char *key_path, int64_t every_ms, struct signer **out,
                char message[SIGNER_MESSAGE_BYTES]) AR_MUST_CHECK;
void signer_free(struct signer *signer);

const struct checkpoint_key *signer_key(const struct signer *signer);
/* Signs now, unless the head has been signed already; done is called once, also when it fails. */
void signer_sign(struct signer *signer, void (*done)(void *context), void *context);
/* When the newest checkpoint that was stored was made (wall clock, microseconds); 0: none yet. */
int64_t signer_made_at(const struct signer *signer);
/* {"key_id", "seq", "made_at"} of the newest checkpoint that was stored (seq 0 and null: none yet);
 * NULL when out of memory. */
json_t *signer_status(const struct signer *signer) AR_MUST_CHECK;

#endif

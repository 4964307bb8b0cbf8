/*
 * signer.c - signs the head of the chain every so often.
 *
 * One checkpoint at a time is on its way to the sink. One that could not be stored is not sent again:
 * the next one covers it, and the log has it anyway.
 */
#include "daemon/signer.h"

#include "daemon/clock.h"
#include "daemon/deadline.h"
#include "daemon/ledger.h"
#include "daemon/log.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct signer {
    struct line *line;
    struct checkpoint_key *key;
    int64_t every_ms;
    struct deadline timer;
    struct checkpoint made;      /* on its way, or the newest that was made; seq 0: none */
    struct checkpoint stored;    /* the newest that is in the ledger */
    bool storing;                /* the ledger will call back */
    bool freed;                  /* which frees it then */
    void (*done)(void *context); /* who waits for this one */
    void *context;
};

/* ---- the key ------------------------------------------------------------------------------------ */

static int say(char *message, const char *path, const char *what)
{
    (void)snprintf(message, SIGNER_MESSAGE_BYTES, "[ledger] checkpoint_key %s: %s", path, what);
    return 1;
}

/* Nobody but its owner, who is root or the daemon's user, may read or write it. */
static int check_file(int fd, const char *path, char *message)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return say(message, path, "not a regular file");
    if (status.st_uid != 0 && status.st_uid != geteuid())
        return say(message, path, "belongs neither to root nor to the daemon's user");
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return say(message, path, "group or others have rights to it: chmod 600");
    return 0;
}

static int read_key(const char *path, struct checkpoint_key **out, char *message)
{
    char pem[CHECKPOINT_MAX_PEM_BYTES];
    AR_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return say(message, path, strerror(errno));
    int rc = check_file(fd, path, message);
    ssize_t length = rc == 0 ? read(fd, pem, sizeof pem) : 0;
    if (rc == 0)
        rc = length < 0 ? say(message, path, strerror(errno))
                        : checkpoint_key_read(pem, (size_t)length, out);
    OPENSSL_cleanse(pem, sizeof pem);
    if (rc == 1 && !message[0])
        return say(message, path, "no Ed25519 key in PEM: make one with auditrun ledger keygen");
    if (rc == 0 && !checkpoint_key_can_sign(*out))
        return say(message, path, "the public half of a key cannot sign");
    return rc;
}

/* ---- signing ------------------------------------------------------------------------------------ */

static void tell_done(struct signer *signer)
{
    void (*done)(void *) = AR_TAKE(signer->done);
    if (done)
        done(signer->context);
}

static void checkpoint_stored(void *context, bool done)
{
    struct signer *signer = context;
    signer->storing = false;
    if (signer->freed) {
        free(signer);
        return;
    }
    if (done)
        signer->stored = signer->made;
    else
        log_warning("the checkpoint of place %lld is in the log only, not in the ledger",
                    (long long)signer->made.seq);
    tell_done(signer);
}

static void log_checkpoint(const struct checkpoint *checkpoint)
{
    AR_AUTO_JSON json_t *value = checkpoint_to_json(checkpoint);
    AR_AUTO_FREE char *text = value ? json_canonical(value) : NULL;
    if (text)
        log_info("checkpoint %s", text);
}

static bool is_signed(const struct signer *signer)
{
    const struct sink_head *head = ledger_head(signer->line->ledger);
    const char *writer = ledger_writer(signer->line->ledger);
    return head->seq == 0 ||
           (signer->made.seq == head->seq && strcmp(signer->made.writer, writer) == 0);
}

static void sign(struct signer *signer)
{
    const struct sink_head *head = ledger_head(signer->line->ledger);
    struct checkpoint made = {.seq = head->seq, .made_at = clock_wall_us()};
    memcpy(made.writer, ledger_writer(signer->line->ledger), sizeof made.writer);
    memcpy(made.row_hash, head->hash, sizeof made.row_hash);
    if (checkpoint_sign(&made, signer->key) < 0) {
        log_error("the head of the chain cannot be signed");
        tell_done(signer);
        return;
    }
    signer->made = made;
    signer->storing = true;
    log_checkpoint(&made);
    ledger_checkpoint(signer->line->ledger, &made, checkpoint_stored, signer);
}

void signer_sign(struct signer *signer, void (*done)(void *context), void *context)
{
    signer->done = done;
    signer->context = context;
    if (signer->storing)
        return; /* told with the one that is on its way */
    if (is_signed(signer))
        tell_done(signer);
    else
        sign(signer);
}

static void is_time(void *context)
{
    struct signer *signer = context;
    if (!signer->storing && !is_signed(signer) && !ledger_is_down(signer->line->ledger))
        sign(signer);
    deadline_start(&signer->timer, signer->every_ms);
}

/* ---- beginning and end -------------------------------------------------------------------------- */

int signer_open(struct line *line, const char *key_path, int64_t every_ms, struct signer **out,
                char message[SIGNER_MESSAGE_BYTES])
{
    struct signer *signer = calloc(1, sizeof *signer);
    message[0] = '\0';
    if (!signer)
        return -ENOMEM;
    signer->line = line;
    signer->every_ms = every_ms;
    int rc = read_key(key_path, &signer->key, message);
    if (rc == 0)
        rc = deadline_init(&signer->timer, line->base, is_time, signer);
    if (rc != 0) {
        signer_free(signer);
        return rc;
    }
    deadline_start(&signer->timer, every_ms);
    *out = signer;
    return 0;
}

void signer_free(struct signer *signer)
{
    if (!signer)
        return;
    deadline_free(&signer->timer);
    checkpoint_key_free(signer->key);
    signer->freed = true;
    if (!signer->storing)
        free(signer);
}

const struct checkpoint_key *signer_key(const struct signer *signer)
{
    return signer->key;
}

int64_t signer_made_at(const struct signer *signer)
{
    return signer->stored.seq > 0 ? signer->stored.made_at : 0;
}

json_t *signer_status(const struct signer *signer)
{
    char made_at[ROW_TIME_BYTES];
    row_time_text(signer->stored.made_at, made_at);
    return json_pack("{s:s, s:I, s:s?}", "key_id", checkpoint_key_id(signer->key), "seq",
                     (json_int_t)signer->stored.seq, "made_at",
                     signer->stored.seq > 0 ? made_at : NULL);
}

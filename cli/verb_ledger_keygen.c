/*
 * verb_ledger_keygen.c - auditrun ledger keygen: the key by which a daemon signs the head of its chain.
 *
 * The private key is in one file that only its owner can read, which is never written over: a key that
 * signed anything is worth keeping. Its text is in memory no longer than it takes to write it.
 */
#include "cli/call.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "protocol/checkpoint.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

static const char help[] =
    "usage: auditrun ledger keygen [OPTIONS] FILE\n"
    "\n"
    "Makes a key (Ed25519) by which a daemon signs the head of its chain, so that a history that "
    "was\n"
    "rewritten as a whole shows. The private half goes to FILE (PEM, mode 600), the public half "
    "to\n"
    "FILE.pub. Neither is ever written over.\n"
    "\n"
    "FILE has to belong to root or to the daemon's user. Name it in [ledger] checkpoint_key of "
    "the\n"
    "configuration and restart the daemon. Keep a copy of FILE.pub on another machine, for\n"
    "auditrun verify --key.\n"
    "\n"
    "To change the key, make another one, name that one in the configuration, and restart the "
    "daemon:\n"
    "the event of its start tells the new key. Keep the old FILE.pub: the checkpoints that were\n"
    "signed before are checked with it.\n"
    "\n"
    "  --json               print what was made as one line of JSON\n"
    "  -h, --help           this page\n"
    "\n"
    "Exit code: 0; 64 usage; 71 no key could be made; 74 a file is there already or cannot be "
    "written.\n"
    "\n"
    "Examples\n"
    "  auditrun ledger keygen /etc/auditrun/checkpoint.key\n"
    "  auditrun ledger keygen --json checkpoint.key | jq -r .key_id\n";

struct given {
    bool json;
};

static const struct option_row rows[] = {{"json", OPTION_FLAG, offsetof(struct given, json)}};

/* The text of a private key is wiped wherever it was. */
static void wipe_text(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
}

static int complain(const char *path, int error)
{
    AR_AUTO_FREE char *escaped = terminal_escape(path, strlen(path));
    return message_error(EXIT_CODE_OUTPUT, "cannot make %s: %s%s", escaped ? escaped : "",
                         strerror(error),
                         error == EEXIST ? ". A key is never written over: name another file" : "");
}

/* 0 or -errno */
static int write_all(int fd, const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t written = write(fd, text, left);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0) {
            text += written;
            left -= (size_t)written;
        }
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

/* A file that was not there, with this text. 0 or -errno; nothing is left behind then. */
static int make_file(const char *path, mode_t mode, const char *text)
{
    AR_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, text);
    if (rc != 0)
        (void)unlink(path);
    return rc;
}

/* The names of both files are on the disk too. 0 or -errno */
static int sync_folder(const char *path)
{
    AR_AUTO_FREE char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    AR_AUTO_CLOSE int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? 0 : -errno;
}

/* Both or neither. 0, or an exit code after the complaint. */
static int write_files(const struct checkpoint_key *key, const char *path, const char *public_path)
{
    AR_CLEANUP(wipe_text) char *private_pem = checkpoint_key_pem(key, true);
    AR_AUTO_FREE char *public_pem = checkpoint_key_pem(key, false);
    if (!private_pem || !public_pem)
        return message_failure(-EIO, "cannot make a key");
    int rc = make_file(public_path, 0644, public_pem);
    if (rc != 0)
        return complain(public_path, -rc);
    rc = make_file(path, 0600, private_pem);
    if (rc == 0) {
        rc = sync_folder(path);
        if (rc != 0)
            (void)unlink(path);
    }
    if (rc == 0)
        return EXIT_CODE_OK;
    (void)unlink(public_path);
    return complain(path, -rc);
}

static int print_json(const char *key_id, const char *path, const char *public_path)
{
    AR_AUTO_JSON json_t *value = json_pack("{s:s, s:s, s:s}", "key_id", key_id, "private_key", path,
                                           "public_key", public_path);
    return value ? call_print_json(value) : message_failure(-ENOMEM, "cannot print the key");
}

static int print(const char *key_id, const char *path, const char *public_path)
{
    AR_AUTO_FREE char *shown = terminal_escape(path, strlen(path));
    AR_AUTO_FREE char *shown_public = terminal_escape(public_path, strlen(public_path));
    if (!shown || !shown_public)
        return message_failure(-ENOMEM, "cannot print the key");
    (void)printf("key id       %s\n"
                 "private key  %s (for root or the daemon's user alone)\n"
                 "public key   %s (keep a copy on another machine)\n"
                 "\n"
                 "Put this into the configuration, and restart the daemon:\n"
                 "\n"
                 "[ledger]\n"
                 "checkpoint_key = %s\n",
                 key_id, shown, shown_public, shown);
    return EXIT_CODE_OK;
}

static int make(const char *file, bool json)
{
    AR_CLEANUP(checkpoint_key_cleanup) struct checkpoint_key *key = NULL;
    AR_AUTO_FREE char *public_file = NULL;
    int rc = checkpoint_key_make(&key);
    if (rc < 0)
        return message_failure(rc, "cannot make a key");
    if (asprintf(&public_file, "%s.pub", file) < 0) {
        public_file = NULL;
        return message_failure(-ENOMEM, "cannot make a key");
    }
    int code = write_files(key, file, public_file);
    if (code != EXIT_CODE_OK)
        return code;
    /* The configuration takes whole paths only. */
    AR_AUTO_FREE char *path = realpath(file, NULL);
    AR_AUTO_FREE char *public_path = realpath(public_file, NULL);
    const char *shown = path ? path : file, *shown_public = public_path ? public_path : public_file;
    return json ? print_json(checkpoint_key_id(key), shown, shown_public)
                : print(checkpoint_key_id(key), shown, shown_public);
}

static int act(const char *title, void *target, const struct options_rest *rest)
{
    const struct given *given = target;
    size_t count = rest->operands.count + rest->behind.count;
    if (count != 1)
        return message_usage(title, "where to? Name one FILE for the private key");
    const char *file = rest->operands.count == 1 ? rest->operands.items[0] : rest->behind.items[0];
    if (file[0] == '\0' || file[strlen(file) - 1] == '/')
        return message_usage(title, "FILE is the name of a file that is not there yet");
    return make(file, given->json);
}

static const struct given defaults;

const struct verb verb_ledger_keygen = {
    .group = "ledger",
    .name = "keygen",
    .summary = "make the key that signs checkpoints",
    .help = help,
    .rows = rows,
    .row_count = AR_COUNT(rows),
    .defaults = &defaults,
    .options_size = sizeof(defaults),
    .takes_operands = true,
    .act = act,
};

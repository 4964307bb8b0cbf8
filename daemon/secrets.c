/*
 * secrets.c - one file of the host a secret, checked on the descriptor that is then read.
 *
 * A name never leads out of its company's folder: the company is one component, the name an identifier,
 * and the kernel follows no link on the way. Who may write to the folder, or owns the file, could
 * choose the value: that is root or the daemon alone; and nobody else may read it. A file that is not
 * so is the same as one that is not there.
 *
 * Each value has pages of its own, without anything else in them.
 */
#include "daemon/secrets.h"

#include "protocol/secret_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define COMPONENT_BYTES 255
#define OPEN_TRIES      16 /* the kernel gives up when the tree is renamed while it walks */

struct secret {
    char name[65];
    char *value; /* mapped */
    size_t length, mapped;
};

struct secrets {
    struct secret *items;
    size_t count;
    struct mask *mask;
};

/* ---- finding ------------------------------------------------------------------------------------ */

/* 1 for what a host's file may be, -errno for what the daemon lacks. */
static int judge_error(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EINTR:
    case EIO:
        return -error;
    default:
        return 1;
    }
}

static int open_beneath(int folder, const char *path, uint64_t flags, int *fd)
{
    struct open_how how = {
        .flags = flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    for (int i = 0; i < OPEN_TRIES; i++) {
        *fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (*fd >= 0)
            return 0;
        if (errno != EAGAIN && errno != EINTR)
            break;
    }
    return judge_error(errno);
}

static bool is_trusted_owner(const struct stat *status)
{
    return status->st_uid == 0 || status->st_uid == geteuid();
}

/* Nobody else may add to it: a hard link would be enough to have another company's file in it. */
static int check_folder(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    return S_ISDIR(status.st_mode) && is_trusted_owner(&status) && (status.st_mode & 022) == 0 ? 0
                                                                                               : 1;
}

/* systemd gives the service's user its credentials by an access list, which shows as group bits. */
static int check_file(int fd, bool credential, size_t *length)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    mode_t others = credential && status.st_uid == 0 ? 037 : 077;
    if (!S_ISREG(status.st_mode) || !is_trusted_owner(&status) || (status.st_mode & others) != 0 ||
        status.st_size < 1 || status.st_size > SECRET_MAX_BYTES)
        return 1;
    *length = (size_t)status.st_size;
    return 0;
}

static int open_credential(const char *company, const char *name, int *fd, size_t *length)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    char file[COMPONENT_BYTES + 1];
    int bytes = snprintf(file, sizeof file, "auditrun.%s.%s", company, name);
    if (!directory || bytes < 0 || (size_t)bytes >= sizeof file)
        return 1;
    AR_AUTO_CLOSE int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return judge_error(errno);
    int rc = open_beneath(folder, file, 0, fd);
    return rc == 0 ? check_file(*fd, true, length) : rc;
}

static int open_file(const char *directory, const char *company, const char *name, int *fd,
                     size_t *length)
{
    AR_AUTO_CLOSE int top = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AR_AUTO_CLOSE int folder = -1;
    if (top < 0)
        return judge_error(errno);
    int rc = check_folder(top);
    if (rc == 0)
        rc = open_beneath(top, company, O_DIRECTORY, &folder);
    if (rc == 0)
        rc = check_folder(folder);
    if (rc == 0)
        rc = open_beneath(folder, name, 0, fd);
    return rc == 0 ? check_file(*fd, false, length) : rc;
}

/* A credential goes before a file, also one that is not as it has to be. 0 with *fd owned and *length;
 * 1: it cannot be had (*fd may be owned even so); -errno. */
static int find(const struct config_secrets *config, const char *company, const char *name, int *fd,
                size_t *length)
{
    int rc = 1;
    if (!text_is_identifier(name))
        return 1;
    if (config->credentials)
        rc = open_credential(company, name, fd, length);
    if (rc == 1 && *fd < 0 && config->directory)
        rc = open_file(config->directory, company, name, fd, length);
    return rc;
}

static bool is_component(const char *company)
{
    size_t length = strnlen(company, COMPONENT_BYTES + 1);
    return length > 0 && length <= COMPONENT_BYTES && !strchr(company, '/') &&
           strcmp(company, ".") != 0 && strcmp(company, "..") != 0;
}

/* ---- holding ------------------------------------------------------------------------------------ */

static void wipe(struct secret *secret)
{
    if (!secret->value)
        return;
    explicit_bzero(secret->value, secret->mapped);
    (void)munmap(secret->value, secret->mapped);
}

void secrets_free(struct secrets *secrets)
{
    if (!secrets)
        return;
    for (size_t i = 0; i < secrets->count; i++)
        wipe(&secrets->items[i]);
    free(secrets->items);
    mask_free(secrets->mask);
    free(secrets);
}

/* Pages that are neither swapped nor dumped, as far as the kernel lets us. */
static int make_room(struct secret *secret, size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = (length + page - 1) / page * page;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -errno;
    (void)mlock(memory, bytes);
    (void)madvise(memory, bytes, MADV_DONTDUMP);
    (void)madvise(memory, bytes, MADV_WIPEONFORK);
    secret->value = memory;
    secret->length = length;
    secret->mapped = bytes;
    return 0;
}

/* All of the file, which must still be as long as it was. 0; 1: it is not; -errno. */
static int read_value(int fd, struct secret *secret)
{
    size_t got = 0;
    char more;
    while (got < secret->length) {
        ssize_t n = read(fd, secret->value + got, secret->length - got);
        if (n == 0)
            return 1;
        if (n < 0 && errno != EINTR)
            return judge_error(errno);
        got += n > 0 ? (size_t)n : 0;
    }
    return read(fd, &more, 1) == 0 ? 0 : 1;
}

static int load(const struct config_secrets *config, const char *company, const char *name,
                struct secrets *secrets)
{
    AR_AUTO_CLOSE int fd = -1;
    size_t length = 0;
    int rc = find(config, company, name, &fd, &length);
    if (rc != 0)
        return rc;
    struct secret *secret = &secrets->items[secrets->count++];
    (void)snprintf(secret->name, sizeof secret->name, "%s", name);
    rc = make_room(secret, length);
    if (rc == 0)
        rc = read_value(fd, secret);
    if (rc == 0 && secrets->mask)
        rc = mask_add(secrets->mask, secret->value, length);
    return rc;
}

static int load_all(const struct config_secrets *config, const char *company,
                    const struct text_list *names, struct secrets *secrets,
                    struct text_list *missing)
{
    bool possible = is_component(company);
    size_t lost = 0;
    for (size_t i = 0; i < names->count; i++) {
        int rc = possible ? load(config, company, names->items[i], secrets) : 1;
        if (rc > 0) {
            rc = text_list_add(missing, names->items[i]);
            lost++;
        }
        if (rc < 0)
            return rc;
    }
    return lost > 0 ? 1 : 0;
}

int secrets_load(const struct config_secrets *config, const char *company,
                 const struct text_list *names, struct secrets **out, struct text_list *missing)
{
    struct secrets *secrets = calloc(1, sizeof *secrets);
    if (!secrets)
        return -ENOMEM;
    secrets->items = calloc(names->count + 1, sizeof *secrets->items);
    if (config->mask_secrets)
        secrets->mask = mask_new();
    int rc = -ENOMEM;
    if (secrets->items && (secrets->mask || !config->mask_secrets))
        rc = load_all(config, company, names, secrets, missing);
    if (rc != 0) {
        secrets_free(secrets);
        secrets = NULL;
    }
    *out = secrets;
    return rc;
}

const struct mask *secrets_mask(const struct secrets *secrets)
{
    return secrets->mask;
}

/* ---- handing over ------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            data += n;
            length -= (size_t)n;
        }
    }
    return 0;
}

int secrets_file(const struct secrets *secrets, int *fd)
{
    AR_AUTO_CLOSE int file = memfd_create("auditrun-secrets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return -errno;
    for (size_t i = 0; i < secrets->count; i++) {
        const struct secret *secret = &secrets->items[i];
        char head[SECRET_HEAD_BYTES];
        secret_file_head(secret->name, secret->length, head);
        int rc = write_all(file, head, strlen(head));
        if (rc == 0)
            rc = write_all(file, secret->value, secret->length);
        if (rc < 0)
            return rc;
    }
    if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    *fd = base_take_fd(&file);
    return 0;
}

int secrets_guard(const struct config_secrets *config)
{
    static const struct rlimit almost_none = {.rlim_cur = 1, .rlim_max = 1};
    if (!config->directory && !config->credentials)
        return 0;
    return setrlimit(RLIMIT_CORE, &almost_none) < 0 ? -errno : 0;
}

/*
 * journal_file.c - the journal on the disk.
 *
 * The invariants: bytes before file->end are whole frames; after a failed append the file is cut back
 * to file->end; the name "journal" always points at a whole journal (rewriting goes through a second
 * file, rename and a sync of the folder).
 */
#include "daemon/journal_file.h"

#include "protocol/digest.h"

#include <endian.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define HEADER_BYTES 20
#define VERSION      1

struct journal_file {
    int directory;
    int lock;
    int fd;
    off_t end;
    bool broken; /* a sync failed */
};

static int checksum(const unsigned char header[HEADER_BYTES], const void *payload, size_t length,
                    unsigned char out[8])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) &&
                EVP_DigestUpdate(context, header, 12) &&
                EVP_DigestUpdate(context, payload, length) &&
                EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
    if (good)
        memcpy(out, digest, 8);
    return good ? 0 : -EIO;
}

static int build_header(enum journal_type type, const char *payload, size_t length,
                        unsigned char header[HEADER_BYTES])
{
    uint32_t size = htole32((uint32_t)length);
    memcpy(header, "ARJ", 3);
    header[3] = VERSION;
    header[4] = (unsigned char)type;
    memset(header + 5, 0, 3);
    memcpy(header + 8, &size, sizeof size);
    return checksum(header, payload, length, header + 12);
}

/* Is there a whole frame at data? Its size, or 0. */
static size_t frame_size(const unsigned char *data, size_t length)
{
    uint32_t size;
    unsigned char sum[8];
    if (length < HEADER_BYTES || memcmp(data, "ARJ", 3) != 0 || data[3] != VERSION)
        return 0;
    memcpy(&size, data + 8, sizeof size);
    size = le32toh(size);
    if (data[4] < JOURNAL_WRITER || data[4] >= JOURNAL_TYPE_END || size > JOURNAL_MAX_PAYLOAD ||
        size > length - HEADER_BYTES)
        return 0;
    if (checksum(data, data + HEADER_BYTES, size, sum) != 0 || memcmp(sum, data + 12, 8) != 0)
        return 0;
    return HEADER_BYTES + size;
}

/* Does a whole frame begin anywhere in the rest? Then what lies before it is damage, not a tail. */
static bool has_frame_behind(const unsigned char *data, size_t length)
{
    for (size_t i = 1; i + HEADER_BYTES <= length; i++) {
        const unsigned char *next = memchr(data + i, 'A', length - i);
        if (!next)
            return false;
        i = (size_t)(next - data);
        if (frame_size(next, length - i))
            return true;
    }
    return false;
}

/* A frame of another version that is otherwise in its place was acknowledged by another daemon. */
static bool is_other_version(const unsigned char *data, size_t length)
{
    return length >= 4 && memcmp(data, "ARJ", 3) == 0 && data[3] != VERSION;
}

static int visit_all(struct journal_file *file, const unsigned char *data, size_t length,
                     journal_visit_fn *visit, void *context)
{
    size_t at = 0, size;
    while ((size = frame_size(data + at, length - at)) > 0) {
        int rc = visit(context, data[at + 4], (const char *)data + at + HEADER_BYTES,
                       size - HEADER_BYTES);
        if (rc < 0)
            return rc;
        at += size;
    }
    file->end = (off_t)at;
    if (at == length)
        return 0;
    if (is_other_version(data + at, length - at) || has_frame_behind(data + at, length - at))
        return -EUCLEAN;
    if (ftruncate(file->fd, file->end) != 0 || fsync(file->fd) != 0)
        return -errno;
    return 0;
}

static int read_all(struct journal_file *file, journal_visit_fn *visit, void *context)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return -errno;
    if (status.st_size == 0)
        return 0;
    size_t length = (size_t)status.st_size;
    void *data = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    int rc = visit_all(file, data, length, visit, context);
    (void)munmap(data, length);
    return rc;
}

static int open_directory(struct journal_file *file, const char *directory)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return -errno;
    file->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->directory < 0)
        return -errno;
    file->lock = openat(file->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->lock < 0 || flock(file->lock, LOCK_EX | LOCK_NB) != 0)
        return -errno;
    if (unlinkat(file->directory, "journal.new", 0) != 0 && errno != ENOENT)
        return -errno;
    file->fd = openat(file->directory, "journal", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->fd < 0 || fsync(file->directory) != 0)
        return -errno;
    return 0;
}

int journal_file_open(const char *directory, journal_visit_fn *visit, void *context,
                      struct journal_file **out, off_t *offset)
{
    struct journal_file *file = calloc(1, sizeof *file);
    if (!file)
        return -ENOMEM;
    *file = (struct journal_file){.directory = -1, .lock = -1, .fd = -1};
    int rc = open_directory(file, directory);
    if (rc == 0)
        rc = read_all(file, visit, context);
    *offset = file->end;
    if (rc < 0)
        journal_file_close(file);
    else
        *out = file;
    return rc;
}

void journal_file_close(struct journal_file *file)
{
    if (!file)
        return;
    base_close(&file->fd);
    base_close(&file->lock);
    base_close(&file->directory);
    free(file);
}

static int write_at(int fd, const void *data, size_t length, off_t at)
{
    const char *bytes = data;
    while (length > 0) {
        ssize_t n = pwrite(fd, bytes, length, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes += n;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

int journal_file_append(struct journal_file *file, enum journal_type type, const char *payload,
                        size_t length)
{
    unsigned char header[HEADER_BYTES];
    if (file->broken)
        return -EIO;
    if (length > JOURNAL_MAX_PAYLOAD)
        return -EMSGSIZE;
    AR_AUTO_FREE char *frame = malloc(HEADER_BYTES + length);
    if (!frame)
        return -ENOMEM;
    int rc = build_header(type, payload, length, header);
    if (rc < 0)
        return rc;
    memcpy(frame, header, HEADER_BYTES);
    memcpy(frame + HEADER_BYTES, payload, length);
    rc = write_at(file->fd, frame, HEADER_BYTES + length, file->end);
    if (rc < 0) {
        if (ftruncate(file->fd, file->end) != 0)
            file->broken = true;
        return rc;
    }
    file->end += (off_t)(HEADER_BYTES + length);
    return 0;
}

int journal_file_sync(struct journal_file *file)
{
    if (!file->broken && fdatasync(file->fd) != 0)
        file->broken = true;
    return file->broken ? -EIO : 0;
}

off_t journal_file_size(const struct journal_file *file)
{
    return file->end;
}

/* The new journal takes the old one's name; from here on there is no way back. */
static int take_name(struct journal_file *file)
{
    if (renameat(file->directory, "journal.new", file->directory, "journal") != 0)
        return -errno;
    return fsync(file->directory) == 0 ? 0 : -errno;
}

int journal_file_rewrite(struct journal_file *file,
                         int (*write_all)(void *context, struct journal_file *file), void *context)
{
    struct journal_file fresh = {.directory = file->directory, .lock = file->lock};
    fresh.fd = openat(file->directory, "journal.new",
                      O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fresh.fd < 0)
        return -errno;
    int rc = write_all(context, &fresh);
    if (rc == 0 && fsync(fresh.fd) != 0)
        rc = -errno;
    if (rc == 0)
        rc = take_name(file);
    if (rc < 0) {
        base_close(&fresh.fd);
        return rc;
    }
    base_close(&file->fd);
    file->fd = fresh.fd;
    file->end = fresh.end;
    return 0;
}

/*
 * journal_file.c - the journal on the disk.
 *
 * The invariants: bytes before file->end are whole frames; after a failed append the file is cut back
 * to file->end; bytes up to file->allocated cannot find the disk full; the name "journal" always
 * points at a whole journal (rewriting goes through a second file, rename and a sync of the folder).
 *
 * That second file, "journal.new", stands ready with some room allocated, so that on a full disk a
 * journal with little left in it can still be rewritten, which frees the old one. The file "lock" is
 * not empty once there has been a journal: one that is missing then was not forgotten, but lost.
 *
 * Room is allocated with fallocate(2). Where a file system cannot, zeros are written and synced in
 * its place, which is as good wherever a file is overwritten in place (not on a file system that
 * copies on write); they are a tail without a frame for the next open.
 */
#include "daemon/journal_file.h"

#include "daemon/fault.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK_BYTES (1 << 20) /* allocated ahead, where the disk has it */

struct journal_file {
    int directory;
    int lock;
    int fd;
    off_t end;
    off_t durable;   /* everything before has been synced */
    off_t allocated; /* at least end */
    size_t cut;
    bool ready;  /* was read without a fault: may be changed */
    bool fills;  /* the file system cannot allocate */
    bool hidden; /* nobody sees it before it is synced: it is being rewritten */
    bool spare;  /* journal.new has JOURNAL_SPARE_BYTES allocated */
    bool marked; /* the last frame is a mark */
    bool broken; /* a sync failed */
};

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

/* ---- room ------------------------------------------------------------------------------------- */

static int fill(const struct journal_file *file, off_t to)
{
    static const char zeros[4096];
    int rc = 0;
    for (off_t at = file->allocated; rc == 0 && at < to; at += (off_t)sizeof zeros) {
        off_t rest = to - at;
        rc = write_at(file->fd, zeros, rest < 4096 ? (size_t)rest : sizeof zeros, at);
    }
    if (rc == 0 && fdatasync(file->fd) != 0)
        rc = -errno;
    if (rc < 0 && ftruncate(file->fd, file->allocated) != 0)
        return -EIO;
    return rc;
}

static int allocate(struct journal_file *file, off_t to)
{
    int rc = 0;
    if (file->broken)
        return -EIO;
    if (to <= file->allocated)
        return 0;
    if (!file->fills) {
        do
            rc = fallocate(file->fd, FALLOC_FL_KEEP_SIZE, file->end, to - file->end) ? -errno : 0;
        while (rc == -EINTR);
        file->fills = rc == -EOPNOTSUPP || rc == -ENOSYS;
    }
    if (file->fills)
        rc = fill(file, to);
    if (rc == 0)
        file->allocated = to;
    return rc;
}

int journal_file_reserve(struct journal_file *file, size_t bytes)
{
    off_t to = file->end + (off_t)bytes;
    if (to <= file->allocated)
        return 0;
    if (allocate(file, to + CHUNK_BYTES) == 0)
        return 0;
    return allocate(file, to);
}

/* Cuts off what was written behind the end, and gets back the room that goes with it. */
static void cut_back(struct journal_file *file)
{
    off_t had = file->allocated;
    file->allocated = file->end;
    if (ftruncate(file->fd, file->end) != 0 || allocate(file, had) < 0)
        file->broken = true;
}

/* ---- reading ---------------------------------------------------------------------------------- */

static int cut_tail(struct journal_file *file, size_t bytes)
{
    file->cut = bytes;
    if (bytes > 0 && ftruncate(file->fd, file->end) != 0)
        return -errno;
    return fsync(file->fd) == 0 ? 0 : -errno;
}

static int visit_all(struct journal_file *file, const unsigned char *data, size_t length,
                     journal_visit_fn *visit, void *context)
{
    struct journal_walk walk = {.data = data, .length = length};
    for (;;) {
        enum journal_piece piece = journal_frame_next(&walk);
        file->end = (off_t)walk.at;
        if (piece == JOURNAL_PIECE_END || piece == JOURNAL_PIECE_TAIL)
            return walk.at == 0 ? -EUCLEAN : cut_tail(file, length - walk.at);
        if (piece != JOURNAL_PIECE_FRAME)
            return -EUCLEAN;
        int rc = walk.frame.type == JOURNAL_MARK ? 0 : visit(context, &walk.frame);
        if (rc < 0)
            return rc;
    }
}

static int read_all(struct journal_file *file, journal_visit_fn *visit, void *context)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0)
        return -errno;
    if (status.st_size == 0)
        return -ENODATA;
    size_t length = (size_t)status.st_size;
    void *data = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    int rc = visit_all(file, data, length, visit, context);
    (void)munmap(data, length);
    file->allocated = file->durable = file->end;
    return rc;
}

/* ---- opening and closing ---------------------------------------------------------------------- */

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
    return 0;
}

/* Without it a journal that is lost later is taken for one that was never there, so that it is tried
 * again at each open. */
static void note_in_lock(const struct journal_file *file)
{
    struct stat status;
    if (fstat(file->lock, &status) == 0 && status.st_size == 0 &&
        write_at(file->lock, "journal\n", 8, 0) == 0)
        (void)fsync(file->lock);
}

static int write_nothing(void *context, struct journal_file *file)
{
    (void)context;
    (void)file;
    return 0;
}

/* The first journal in this folder. */
static int create(struct journal_file *file)
{
    struct stat status;
    if (errno != ENOENT || fstat(file->lock, &status) != 0)
        return -errno;
    return status.st_size > 0 ? -ENODATA : journal_file_rewrite(file, write_nothing, NULL, 0);
}

static int open_file(struct journal_file *file, journal_visit_fn *visit, void *context)
{
    file->fd = openat(file->directory, "journal", O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int rc = file->fd < 0 ? create(file) : read_all(file, visit, context);
    if (rc < 0)
        return rc;
    note_in_lock(file);
    file->ready = true;
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
        rc = open_file(file, visit, context);
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
    if (file->ready && journal_file_sync(file) == 0) {
        journal_file_mark(file);
        (void)!ftruncate(file->fd, file->end); /* what is allocated behind it */
        (void)unlinkat(file->directory, "journal.new", 0);
    }
    base_close(&file->fd);
    base_close(&file->lock);
    base_close(&file->directory);
    free(file);
}

/* ---- appending -------------------------------------------------------------------------------- */

/* How far the frame at the end is behind what has been synced. */
static uint32_t unsynced_bytes(const struct journal_file *file)
{
    off_t bytes = file->hidden ? 0 : file->end - file->durable;
    return bytes < (off_t)UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

int journal_file_append(struct journal_file *file, enum journal_type type, const char *payload,
                        size_t length)
{
    struct journal_frame frame = {type, payload, length, (uint64_t)file->end, unsynced_bytes(file)};
    size_t size = JOURNAL_HEADER_BYTES + length;
    if (file->broken)
        return -EIO;
    if (length > JOURNAL_MAX_PAYLOAD)
        return -EMSGSIZE;
    AR_AUTO_FREE unsigned char *bytes = malloc(size);
    if (!bytes)
        return -ENOMEM;
    int rc = journal_frame_build(&frame, bytes);
    if (rc < 0)
        return rc;
    memcpy(bytes + JOURNAL_HEADER_BYTES, payload, length);
    rc = write_at(file->fd, bytes, size, file->end);
    if (rc < 0) {
        cut_back(file);
        return rc;
    }
    file->end += (off_t)size;
    if (file->allocated < file->end)
        file->allocated = file->end;
    file->marked = type == JOURNAL_MARK;
    return 0;
}

int journal_file_sync(struct journal_file *file)
{
    if (!file->broken && file->end > file->durable) {
        file->broken = fdatasync(file->fd) != 0;
        file->durable = file->end;
    }
    return file->broken ? -EIO : 0;
}

void journal_file_mark(struct journal_file *file)
{
    if (file->broken || file->marked || file->durable != file->end)
        return;
    /* Without it damage of the last frames is taken for a torn tail; no reason to fail. */
    if (journal_file_append(file, JOURNAL_MARK, "", 0) < 0)
        file->marked = false;
}

off_t journal_file_size(const struct journal_file *file)
{
    return file->end;
}

size_t journal_file_cut(const struct journal_file *file)
{
    return file->cut;
}

bool journal_file_allocates(const struct journal_file *file)
{
    return !file->fills;
}

/* ---- rewriting -------------------------------------------------------------------------------- */

/* Opens journal.new, empty. With a spare its room is there already. */
static int open_fresh(const struct journal_file *file, struct journal_file *fresh)
{
    *fresh = (struct journal_file){.directory = file->directory,
                                   .lock = -1,
                                   .fills = file->fills,
                                   .hidden = true,
                                   .allocated = file->spare ? JOURNAL_SPARE_BYTES : 0};
    fresh->fd =
        openat(file->directory, "journal.new",
               O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (file->spare ? 0 : O_TRUNC), 0600);
    return fresh->fd < 0 ? -errno : 0;
}

/* Room for the next rewrite. Without it that has to find its own. */
static void make_spare(struct journal_file *file)
{
    struct journal_file fresh;
    file->spare = false;
    if (open_fresh(file, &fresh) < 0)
        return;
    file->spare = allocate(&fresh, JOURNAL_SPARE_BYTES) == 0;
    base_close(&fresh.fd);
}

static int write_fresh(struct journal_file *fresh,
                       int (*write_all)(void *context, struct journal_file *file), void *context,
                       size_t reserve)
{
    int rc = write_all(context, fresh);
    if (rc == 0)
        rc = journal_file_append(fresh, JOURNAL_MARK, "", 0);
    if (rc == 0)
        rc = journal_file_reserve(fresh, reserve);
    if (rc == 0 && fsync(fresh->fd) != 0)
        rc = -errno;
    return rc;
}

/* The new journal has the old one's name: from here on there is no way back. */
static void go_on_in(struct journal_file *file, struct journal_file *fresh)
{
    base_close(&file->fd);
    file->fd = fresh->fd;
    file->end = file->durable = fresh->end;
    file->allocated = fresh->allocated;
    file->fills = fresh->fills;
    file->marked = true;
    if (fsync(file->directory) != 0)
        file->broken = true;
}

int journal_file_rewrite(struct journal_file *file,
                         int (*write_all)(void *context, struct journal_file *file), void *context,
                         size_t reserve)
{
    struct journal_file fresh;
    if (file->broken)
        return -EIO;
    int rc = open_fresh(file, &fresh);
    if (rc == 0)
        rc = write_fresh(&fresh, write_all, context, reserve);
    fault_point("rewrite_written");
    if (rc == 0 && renameat(file->directory, "journal.new", file->directory, "journal") != 0)
        rc = -errno;
    if (rc < 0) {
        base_close(&fresh.fd);
        file->spare = false;
    } else {
        go_on_in(file, &fresh);
        fault_point("rewrite_renamed");
    }
    make_spare(file);
    return rc < 0 ? rc : file->broken ? -EIO : 0;
}

int journal_file_create(int directory, int (*write_all)(void *context, struct journal_file *file),
                        void *context)
{
    struct journal_file file = {.directory = directory, .lock = -1, .fd = -1};
    int rc = journal_file_rewrite(&file, write_all, context, 0);
    base_close(&file.fd);
    (void)unlinkat(directory, "journal.new", 0);
    return rc;
}

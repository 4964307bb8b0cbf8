/*
 * journal_file.h - the journal on the disk: an append-only file of checksummed frames
 * (journal_frame.h).
 *
 * What was synced is never lost; a torn tail (the end of a write that a crash cut off) was never
 * acknowledged and is cut off at the next open; damage anywhere else is an error that names the
 * offset, and the file is left as it is.
 *
 * Not for several threads at a time. The folder is locked: a second daemon on it does not start.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_FILE_H
#define AUDITRUN_DAEMON_JOURNAL_FILE_H

#include "daemon/journal_frame.h"

struct journal_file;

/* A journal of no more than this, with what is reserved, can be rewritten on a full disk. */
#define JOURNAL_SPARE_BYTES (64 << 10)

/* Called for each frame at open (but marks). 0, or -errno to stop. */
typedef int journal_visit_fn(void *context, const struct journal_frame *frame);

/* Locks the folder (made if missing, mode 0700) and reads the journal in it. 0 with *out owned;
 * -EWOULDBLOCK: another daemon has it; -EUCLEAN: damaged at *offset; -ENODATA: there was a journal
 * here, and it is empty or gone; or -errno. On failure nothing in an existing journal was changed. */
int journal_file_open(const char *directory, journal_visit_fn *visit, void *context,
                      struct journal_file **out, off_t *offset) AR_MUST_CHECK;
/* Syncs, gives back what was allocated and not used. */
void journal_file_close(struct journal_file *file);

/* Allocates so many bytes behind the end, so that writing them cannot find the disk full. 0, -ENOSPC
 * or -errno. Kept until they are written to, also by journal_file_rewrite(). */
int journal_file_reserve(struct journal_file *file, size_t bytes) AR_MUST_CHECK;
/* Appends a frame; not durable before journal_file_sync(). On -errno (disk full) nothing of the frame
 * is left in the file. */
int journal_file_append(struct journal_file *file, enum journal_type type, const char *payload,
                        size_t length) AR_MUST_CHECK;
/* After a failed sync nobody knows what is on the disk: from then on everything fails with -EIO. */
int journal_file_sync(struct journal_file *file) AR_MUST_CHECK;
/* Notes, lazily, that everything before has been synced, if it has: damage in the last frames then
 * shows as damage. */
void journal_file_mark(struct journal_file *file);

off_t journal_file_size(const struct journal_file *file);
/* Bytes of a torn tail that the opening cut off. */
size_t journal_file_cut(const struct journal_file *file);
/* Can the file system allocate? If not, room is made by writing zeros. */
bool journal_file_allocates(const struct journal_file *file);

/* Writes the journal anew with only what write_all appends, durably and with so many bytes reserved
 * behind it, and goes on in it. On -errno the old one stays, with all that was reserved. */
int journal_file_rewrite(struct journal_file *file,
                         int (*write_all)(void *context, struct journal_file *file), void *context,
                         size_t reserve) AR_MUST_CHECK;

/* Puts a new journal with what write_all appends into the place of whatever is there, durably. For
 * repairs: the caller has the folder (a descriptor, which stays the caller's) to itself. */
int journal_file_create(int directory, int (*write_all)(void *context, struct journal_file *file),
                        void *context) AR_MUST_CHECK;

#endif

/*
 * journal_frame.h - one frame of the journal as bytes, and what stands in a journal that was cut off
 * or damaged.
 *
 * A frame is 32 bytes of header and its payload. The header (numbers little-endian): "ARJ", version
 * byte 1, type, three zero bytes, payload length (4), how many bytes before it had not been synced
 * when it was written (4), its own place in the file (8), and the first eight bytes of the SHA-256
 * over all that and the payload.
 *
 * The place tells frames that were moved, or have lost something before them. The unsynced bytes tell
 * a hole in a write that a power failure cut off, of which nothing was acknowledged, from damage of
 * what had been acknowledged.
 */
#ifndef AUDITRUN_DAEMON_JOURNAL_FRAME_H
#define AUDITRUN_DAEMON_JOURNAL_FRAME_H

#include "protocol/base.h"

#include <sys/types.h>

enum journal_type {
    JOURNAL_WRITER = 1,  /* payload: the writer's id; the head before it is not its own */
    JOURNAL_INTENT = 2,  /* payload: record (interrupted) as journal JSON */
    JOURNAL_KEPT = 3,    /* payload: record as journal JSON: takes the place of the intent */
    JOURNAL_SETTLED = 4, /* payload: run or event id: nothing more to do for it */
    JOURNAL_EVENT = 5,   /* payload: event id, blank, the event as text */
    JOURNAL_HEAD = 6,    /* payload: seq, blank, hash: the writer's last acknowledged head */
    JOURNAL_MARK = 7,    /* no payload: what is before it has been synced */
    JOURNAL_SWITCH = 8,  /* payload: its id, blank, switch_off_text() */
    JOURNAL_TYPE_END
};

#define JOURNAL_HEADER_BYTES 32
#define JOURNAL_MAX_PAYLOAD  (1u << 20)

/* What was written, and where. */
struct journal_frame {
    enum journal_type type;
    const char *payload; /* not NUL-terminated; points into the bytes that were read */
    size_t length;       /* of the payload */
    uint64_t place;      /* where it was written to */
    uint32_t unsynced;
};

/* The header of a frame; 0, or -EIO when no digest can be made. */
int journal_frame_build(const struct journal_frame *frame,
                        unsigned char header[JOURNAL_HEADER_BYTES]) AR_MUST_CHECK;
/* The whole size of the frame at data, 0 when there is none. */
size_t journal_frame_read(const unsigned char *data, size_t length, struct journal_frame *out);

/* The word for a type in messages. */
const char *journal_frame_word(enum journal_type type);

enum journal_piece {
    JOURNAL_PIECE_FRAME,     /* whole and in its place */
    JOURNAL_PIECE_MISPLACED, /* a whole frame that was written to another place */
    JOURNAL_PIECE_DAMAGE, /* bytes that are no frame, and were acknowledged as far as one can tell */
    JOURNAL_PIECE_VERSION, /* the same, and they begin like a frame of another version */
    JOURNAL_PIECE_TAIL,    /* the rest, which was never acknowledged: a write that was cut off */
    JOURNAL_PIECE_END
};

/* Walks over the bytes of a journal. Zeroed but for data and length at the beginning. */
struct journal_walk {
    const unsigned char *data;
    size_t length;
    size_t next;                /* where the next piece begins */
    size_t at, size;            /* the last piece */
    struct journal_frame frame; /* of FRAME and MISPLACED */
};

enum journal_piece journal_frame_next(struct journal_walk *walk);

#endif

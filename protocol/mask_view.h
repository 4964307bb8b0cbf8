/*
 * mask_view.h - one way to read a stream in which a value may hide: as it is, percent-decoded, or as
 * the inside of a JSON string.
 *
 * A reader is fed one byte at a time. What is not a whole escape sequence stands for itself.
 */
#ifndef AUDITRUN_PROTOCOL_MASK_VIEW_H
#define AUDITRUN_PROTOCOL_MASK_VIEW_H

#include "protocol/base.h"

#define MASK_VIEW_ESCAPE_BYTES 12 /* the longest: two halves of a surrogate pair */

enum mask_view { MASK_VIEW_RAW, MASK_VIEW_PERCENT, MASK_VIEW_JSON, MASK_VIEW_COUNT };

/* Zeroed but for the view is empty. */
struct mask_view_reader {
    enum mask_view view;
    size_t count; /* bytes of a sequence that has begun */
    unsigned char pending[MASK_VIEW_ESCAPE_BYTES];
    uint64_t at[MASK_VIEW_ESCAPE_BYTES]; /* where in the stream each of them is */
};

/* What a sequence stands for: bytes, and the part of the stream that they come from. */
struct mask_view_unit {
    unsigned char bytes[4];
    size_t count;
    uint64_t start, end;
};

/* Does this byte begin an escape sequence in the view? */
bool mask_view_escapes(enum mask_view view, unsigned char byte);

/* Adds a byte. All units must have been taken before. */
void mask_view_put(struct mask_view_reader *reader, unsigned char byte, uint64_t at);

/* Takes the next unit; false when there is none, or more has to be known. last: nothing more comes. */
bool mask_view_take(struct mask_view_reader *reader, bool last, struct mask_view_unit *out);

#endif

/*
 * mask.h - takes secret values out of a stream of bytes.
 *
 * A value is found as it is, in base64 (both alphabets, at each of the three alignments: the characters
 * that it decides alone), URL-encoded (whatever is encoded of it, either case) and as the inside of a
 * JSON string; line ends in between do not matter, unless there are many in a row. It comes out as
 * "***". Values shorter than MASK_MIN_BYTES, line ends not counted, are not looked for: they would be
 * found everywhere.
 *
 * A stream is fed in pieces of any size; what comes out is the same for any division into pieces.
 * Only what may still become a value is held back.
 */
#ifndef AUDITRUN_PROTOCOL_MASK_H
#define AUDITRUN_PROTOCOL_MASK_H

#include "protocol/base.h"

#define MASK_MIN_BYTES 4

struct mask;        /* the values of a run */
struct mask_stream; /* one stream of bytes, and where in a value it is */

/* An empty one; NULL when out of memory. */
struct mask *mask_new(void) AR_MUST_CHECK;
/* Adds a value. 0 or -ENOMEM. Not once a stream has been made of it. */
int mask_add(struct mask *mask, const void *value, size_t length) AR_MUST_CHECK;
/* Wipes and frees. NULL is fine. */
void mask_free(struct mask *mask);

/* The mask is borrowed and must live as long. NULL when out of memory. */
struct mask_stream *mask_stream_new(const struct mask *mask) AR_MUST_CHECK;
/* Takes a piece; *out is what can be given on now: malloc'd (NULL when *out_length is 0). 0 or
 * -ENOMEM. */
int mask_stream_put(struct mask_stream *stream, const void *data, size_t length, char **out,
                    size_t *out_length) AR_MUST_CHECK;
/* The rest. cut: the stream was cut off here, and what may have been the beginning of a value is
 * masked like one. 0 or -ENOMEM. */
int mask_stream_end(struct mask_stream *stream, bool cut, char **out,
                    size_t *out_length) AR_MUST_CHECK;
/* Wipes and frees. NULL is fine. */
void mask_stream_free(struct mask_stream *stream);

#endif

/*
 * frame.h - bytes into lines: the only framing in the project (client socket and command line).
 *
 * A frame is one line of at most max_bytes bytes, without its '\n'. Fed byte by byte or all at
 * once, the result is the same. The maximum is checked before memory is taken; the buffer grows on
 * demand and shrinks again when it is empty, so an idle connection costs next to nothing.
 */
#ifndef AUDITRUN_PROTOCOL_FRAME_H
#define AUDITRUN_PROTOCOL_FRAME_H

#include "protocol/base.h"

struct frame_reader {
    char *data;
    size_t start;    /* first byte that has not been handed out */
    size_t scanned;  /* bytes from start that are known to hold no '\n' */
    size_t length;   /* bytes in data */
    size_t capacity; /* bytes allocated */
    size_t max_bytes;
};

enum frame_result { FRAME_DONE, FRAME_MORE, FRAME_BAD };

/* An empty reader for lines of at most max_bytes bytes; takes no memory yet. */
void frame_init(struct frame_reader *reader, size_t max_bytes);

/* Frees the buffer; safe on a zeroed or freed reader. */
void frame_free(struct frame_reader *reader);

/* Room to read into: *space and *available (> 0). Call it when frame_next() has said FRAME_MORE (or
 * before the first read). Invalidates lines handed out before. Returns 0 or -ENOMEM; FRAME_BAD (positive)
 * when the buffer holds max_bytes + 1 bytes without an end of line, which frame_next() reports. */
int frame_space(struct frame_reader *reader, char **space, size_t *available) AR_MUST_CHECK;

/* n bytes were put into the space. */
void frame_commit(struct frame_reader *reader, size_t n);

/* The next line: FRAME_DONE with *line (NUL-terminated in place, valid until the next call on the
 * reader) and *length; FRAME_MORE when no whole line is there; FRAME_BAD when the line is
 * longer than max_bytes (the reader is then of no more use). A line may contain NUL bytes. */
enum frame_result frame_next(struct frame_reader *reader, char **line,
                             size_t *length) AR_MUST_CHECK;

#endif

/*
 * mask_needle.h - what is looked for when a value is masked: its own bytes, and its base64 text at each
 * of the three alignments, each with the table that tells where to go on after a mismatch (KMP).
 *
 * Needles have no line ends. Symbols make one what some encoders write differently.
 */
#ifndef AUDITRUN_PROTOCOL_MASK_NEEDLE_H
#define AUDITRUN_PROTOCOL_MASK_NEEDLE_H

#include "protocol/mask.h"

enum mask_alphabet { MASK_PLAIN, MASK_BASE64, MASK_ALPHABETS };

struct mask_needle {
    enum mask_alphabet alphabet;
    uint32_t length;
    uint32_t next;  /* with the same first symbol: its index + 1, 0 at the end */
    uint32_t *back; /* [length + 1]: the longest end of so many bytes that is a beginning too */
    unsigned char *text; /* symbols, in the same memory as back */
};

struct mask {
    struct mask_needle *needles;
    size_t count, capacity;
    uint32_t first[MASK_ALPHABETS][256]; /* by the first symbol: the index of a needle + 1, or 0 */
    bool starts[256];                    /* may a needle begin with this byte? */
    size_t line_ends;                    /* more than so many in a row belong to no value */
};

static inline bool mask_needle_is_line_end(unsigned char byte)
{
    return byte == '\n' || byte == '\r';
}

/* A blank may come as '+' in a URL; base64 has an alphabet for URLs, and suffers from the same. */
static inline unsigned char mask_needle_symbol(enum mask_alphabet alphabet, unsigned char byte)
{
    if (alphabet == MASK_PLAIN)
        return byte == '+' ? ' ' : byte;
    return byte == '-' || byte == ' ' ? '+' : byte == '_' ? '/' : byte;
}

#endif

/*
 * uuid7.h - UUID version 7 (RFC 9562) that never steps back.
 *
 * The caller hands in the clock and the random bytes, so this stays pure. Within one generator ids
 * rise strictly: when the clock stands still or steps back, the last time is kept and a counter
 * (rand_a and the upper bits of rand_b) goes up; when that overflows, the time is taken one
 * millisecond on.
 */
#ifndef AUDITRUN_PROTOCOL_UUID7_H
#define AUDITRUN_PROTOCOL_UUID7_H

#include "protocol/base.h"

#define UUID7_TEXT_BYTES 37 /* 36 characters and NUL */

struct uuid7_generator {
    uint64_t last_ms; /* time of the last id, milliseconds since the epoch */
    uint64_t counter; /* 42 bits: rand_a (12) and the first 30 of rand_b */
};

/* The next id. now_ms: wall clock in ms since the epoch; random: 10 fresh random bytes. */
void uuid7_next(struct uuid7_generator *generator, uint64_t now_ms, const uint8_t random[10],
                char out[UUID7_TEXT_BYTES]);

/* Raises the generator to an id that was given out before (at start, from the journal). */
void uuid7_raise(struct uuid7_generator *generator, const char *id);

/* Is it a lower-case UUID of version 7 with hyphens? */
bool uuid7_is_valid(const char *text);

/* Is it a lower-case UUID of any version with hyphens? */
bool uuid7_is_uuid(const char *text);

/* The milliseconds since the epoch in a valid id. */
uint64_t uuid7_time_ms(const char *text);

#endif

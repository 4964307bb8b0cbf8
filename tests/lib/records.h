/*
 * records.h - records for tests: plain ones, and odd ones from a seed that can be had again.
 */
#ifndef AUDITRUN_TESTS_LIB_RECORDS_H
#define AUDITRUN_TESTS_LIB_RECORDS_H

#include "protocol/record.h"

#define RECORDS_MAX 1000

/* A writer's chain in the making. */
struct records_chain {
    struct uuid7_generator ids;
    uint64_t random; /* never 0 */
    char writer[UUID7_TEXT_BYTES];
    int64_t seq;
    char hash[DIGEST_HEX_BYTES];
};

/* A chain of a new writer, empty. The seed makes ids and values. */
void records_begin(struct records_chain *chain, uint64_t seed);
uint64_t records_random(struct records_chain *chain);

/* An unsealed record like those of every day; it ends the test when memory is short. */
struct record *records_plain(struct records_chain *chain);
/* One with odd but valid values: extreme times and numbers, nulls, text that is hard to keep. */
struct record *records_odd(struct records_chain *chain);
/* Seals it as the next one of the chain, which moves on. */
void records_seal(struct records_chain *chain, struct record *record);
/* records[0 .. count - 1] = sealed plain ones. */
void records_fill(struct records_chain *chain, struct record **records, size_t count);
void records_free(struct record **records, size_t count);

/* Same in every column, by canonical text. */
bool records_same(const struct record *one, const struct record *other);

#endif

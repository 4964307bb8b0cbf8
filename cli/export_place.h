/*
 * export_place.h - how far an export has come in each chain: what --after says, or what a file that an
 * export wrote before ends with.
 */
#ifndef AUDITRUN_CLI_EXPORT_PLACE_H
#define AUDITRUN_CLI_EXPORT_PLACE_H

#include "protocol/checkpoint.h"
#include "protocol/text.h"

struct export_place {
    char writer[UUID7_TEXT_BYTES];
    int64_t seq;            /* of the last row; 0: none */
    int64_t checkpoint_seq; /* of the last checkpoint; 0: none */
    char checkpoint_key[DIGEST_HEX_BYTES];
};

/* Zeroed is empty; export_places_free(). */
struct export_places {
    struct export_place *items;
    size_t count, capacity, last;
};
void export_places_free(struct export_places *places);

/* The place of a writer, NULL when there is none. */
const struct export_place *export_places_find(struct export_places *places, const char *writer);
/* The same, made if need be; NULL when out of memory. Borrowed until the next one is made. */
struct export_place *export_places_get(struct export_places *places, const char *writer);

/* From "WRITER:SEQ" each. 0, or an exit code after the complaint. */
int export_places_parse(const char *title, const struct text_list *after,
                        struct export_places *places) AR_MUST_CHECK;

/* Reads a file that an export wrote, and tells where its last whole line ends. csv: it is of that form.
 * 0, or an exit code after the complaint. */
int export_places_read(const char *path, bool csv, struct export_places *places,
                       int64_t *end) AR_MUST_CHECK;

#endif

/*
 * key_list.h - the idempotency keys of a ledger, streamed: for export. Blocking, one key in memory.
 */
#ifndef AUDITRUN_SINKS_KEY_LIST_H
#define AUDITRUN_SINKS_KEY_LIST_H

#include "sinks/reader.h"

struct key_list;

struct key_list_item {
    const char *company, *idempotency_key, *request_sha256,
        *run_id; /* borrowed until the next one */
};

/* Same URLs as reader_open(), and the same results. */
int key_list_open(const char *url, struct key_list **out,
                  char message[READER_MESSAGE_BYTES]) AR_MUST_CHECK;
void key_list_close(struct key_list *list);
static inline void key_list_cleanup(struct key_list **list)
{
    key_list_close(*list);
}

/* The next key in the order of company and key: 0, 1 at the end, 2 when the store failed (message). */
int key_list_next(struct key_list *list, struct key_list_item *out,
                  char message[READER_MESSAGE_BYTES]) AR_MUST_CHECK;

#endif

/*
 * events.h - the daemon's own events in a SQLite ledger, for tests: read past the daemon.
 */
#ifndef AUDITRUN_TESTS_LIB_EVENTS_H
#define AUDITRUN_TESTS_LIB_EVENTS_H

#include "protocol/json.h"
#include "protocol/vocabulary.h"

/* The details of all events of this kind in the ledger at the URL, in the order of the chain: a JSON
 * array, owned. Ends the test when they cannot be read. */
json_t *events_read(const char *url, enum event_kind kind);
/* The same, once there are so many; ends the test when there are not within ms. */
json_t *events_wait(const char *url, enum event_kind kind, size_t count, int64_t ms);

#endif

/*
 * events.c - see events.h.
 */
#include "tests/lib/events.h"

#include "tests/lib/processes.h"

#include <check.h>
#include <sqlite3.h>
#include <string.h>

json_t *events_read(const char *url, enum event_kind kind)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    json_t *list = json_array();
    ck_assert(strncmp(url, "sqlite:", 7) == 0);
    ck_assert_int_eq(sqlite3_open_v2(url + 7, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 10000);
    ck_assert_int_eq(
        sqlite3_prepare_v2(db, "SELECT detail FROM events WHERE kind = ? ORDER BY event_id", -1,
                           &statement, NULL),
        SQLITE_OK);
    (void)sqlite3_bind_text(statement, 1, event_kind_word(kind), -1, SQLITE_STATIC);
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        json_t *detail = json_loads((const char *)sqlite3_column_text(statement, 0), 0, NULL);
        ck_assert_int_eq(json_array_append_new(list, detail), 0);
    }
    ck_assert_int_eq(rc, SQLITE_DONE);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(db);
    return list;
}

struct wanted {
    const char *url;
    enum event_kind kind;
    size_t count;
    json_t *found;
};

static bool are_there(void *context)
{
    struct wanted *wanted = context;
    json_decref(wanted->found);
    wanted->found = events_read(wanted->url, wanted->kind);
    return json_array_size(wanted->found) >= wanted->count;
}

json_t *events_wait(const char *url, enum event_kind kind, size_t count, int64_t ms)
{
    struct wanted wanted = {.url = url, .kind = kind, .count = count};
    ck_assert_msg(processes_wait(are_there, &wanted, ms), "%zu events of %zu",
                  json_array_size(wanted.found), count);
    return wanted.found;
}

/*
 * sqlite_schema.c - the migrations of a SQLite ledger, all of them in one transaction: a store is
 * at one version or at another, never between them.
 */
#include "sinks/sqlite_schema.h"

#include "sinks/migrations.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>

#define LOCK_WAIT_MS 10000

static int say(sqlite3 *db, char message[SCHEMA_MESSAGE_BYTES])
{
    (void)snprintf(message, SCHEMA_MESSAGE_BYTES, "%s", sqlite3_errmsg(db));
    return 1;
}

/* SQLite would create the file readable for everybody; the log beside it follows the file. */
static int create_file(const char *path, char message[SCHEMA_MESSAGE_BYTES])
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        (void)snprintf(message, SCHEMA_MESSAGE_BYTES, "%m");
        return 1;
    }
    (void)close(fd);
    return 0;
}

static int version_of(sqlite3 *db, int *version)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT coalesce(max(version), 0) FROM migrations", -1,
                                &statement, NULL);
    if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        *version = sqlite3_column_int(statement, 0);
    else
        rc = SQLITE_ERROR;
    (void)sqlite3_finalize(statement);
    return rc;
}

static int note_version(sqlite3 *db, const struct migration *migration)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "INSERT INTO migrations (version, name) VALUES (?1, ?2)", -1,
                                &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(statement, 1, migration->version);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 2, migration->name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK && sqlite3_step(statement) != SQLITE_DONE)
        rc = SQLITE_ERROR;
    (void)sqlite3_finalize(statement);
    return rc;
}

static int migrate(sqlite3 *db, int *applied)
{
    int version = 0;
    int rc = sqlite3_exec(db,
                          "CREATE TABLE IF NOT EXISTS migrations ("
                          "version INTEGER PRIMARY KEY, name TEXT NOT NULL, "
                          "applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')))",
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = version_of(db, &version);
    for (size_t i = 0; i < migrations_sqlite_count && rc == SQLITE_OK; i++) {
        const struct migration *migration = &migrations_sqlite[i];
        if (migration->version <= version)
            continue;
        rc = sqlite3_exec(db, migration->sql, NULL, NULL, NULL);
        if (rc == SQLITE_OK)
            rc = note_version(db, migration);
        ++*applied;
    }
    return rc;
}

static int init_open(sqlite3 *db, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    if (sqlite3_busy_timeout(db, LOCK_WAIT_MS) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", NULL, NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return say(db, message);
    if (migrate(db, applied) == SQLITE_OK &&
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return 0;
    (void)say(db, message);
    (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return 1;
}

int sqlite_schema_init(const char *path, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    sqlite3 *db = NULL;
    int rc = create_file(path, message);
    if (rc != 0)
        return rc;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL) !=
        SQLITE_OK)
        rc = say(db, message);
    else
        rc = init_open(db, applied, message);
    (void)sqlite3_close(db);
    return rc;
}

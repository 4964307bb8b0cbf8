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

/* ---- which migrations are there ------------------------------------------------------------- */

static int count_of(sqlite3 *db, const char *sql, int *count, char message[SCHEMA_MESSAGE_BYTES])
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        *count = sqlite3_column_int(statement, 0);
    else
        rc = say(db, message);
    (void)sqlite3_finalize(statement);
    return rc == SQLITE_OK ? 0 : 1;
}

static const char *text_of(sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text ? (const char *)text : "";
}

static int check_rows(sqlite3 *db, sqlite3_stmt *statement, int *version,
                      char message[SCHEMA_MESSAGE_BYTES])
{
    int rc = 0, step;
    while (rc == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW) {
        rc = migrations_check(migrations_sqlite, migrations_sqlite_count, *version,
                              text_of(statement, 0), text_of(statement, 1), message,
                              SCHEMA_MESSAGE_BYTES);
        ++*version;
    }
    if (rc == 0 && step != SQLITE_DONE) {
        (void)say(db, message);
        return 2;
    }
    return rc;
}

/* 0 with *version set, 1 when they are not those of this program, 2 when the store failed, -EIO. */
static int version_of(sqlite3 *db, int *version, char message[SCHEMA_MESSAGE_BYTES])
{
    int tables = 0, digests = 0;
    sqlite3_stmt *statement = NULL;
    *version = 0;
    if (count_of(db, "SELECT count(*) FROM pragma_table_info('migrations')", &tables, message) != 0)
        return 2;
    if (tables == 0)
        return 0;
    if (count_of(db, "SELECT count(*) FROM pragma_table_info('migrations') WHERE name = 'sha256'",
                 &digests, message) != 0)
        return 2;
    if (digests == 0) {
        (void)snprintf(message, SCHEMA_MESSAGE_BYTES, "%s", migrations_too_old);
        return 1;
    }
    int rc = sqlite3_prepare_v2(db, "SELECT version, sha256 FROM migrations ORDER BY version", -1,
                                &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = check_rows(db, statement, version, message);
    } else {
        (void)say(db, message);
        rc = 2;
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

/* ---- status --------------------------------------------------------------------------------- */

int sqlite_schema_status(const char *path, struct schema_status *status,
                         char message[SCHEMA_MESSAGE_BYTES])
{
    sqlite3 *db = NULL;
    status->newest = migrations_newest(migrations_sqlite, migrations_sqlite_count);
    int rc = 2;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(db, LOCK_WAIT_MS) != SQLITE_OK)
        (void)say(db, message);
    else
        rc = version_of(db, &status->version, message);
    (void)sqlite3_close(db);
    status->differs = rc == 1;
    return rc == 1 ? 0 : rc == 2 ? 1 : rc;
}

/* ---- init ----------------------------------------------------------------------------------- */

static int note_version(sqlite3 *db, const struct migration *migration,
                        char message[SCHEMA_MESSAGE_BYTES])
{
    char digest[DIGEST_HEX_BYTES];
    sqlite3_stmt *statement = NULL;
    int rc = migrations_digest(migration, digest);
    if (rc < 0)
        return rc;
    rc =
        sqlite3_prepare_v2(db, "INSERT INTO migrations (version, name, sha256) VALUES (?1, ?2, ?3)",
                           -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int(statement, 1, migration->version);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 2, migration->name, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(statement, 3, digest, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK && sqlite3_step(statement) != SQLITE_DONE)
        rc = SQLITE_ERROR;
    if (rc != SQLITE_OK)
        (void)say(db, message);
    (void)sqlite3_finalize(statement);
    return rc == SQLITE_OK ? 0 : 1;
}

static int run(sqlite3 *db, const char *sql, char message[SCHEMA_MESSAGE_BYTES])
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : say(db, message);
}

static int migrate(sqlite3 *db, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    int version = 0;
    int rc = version_of(db, &version, message);
    if (rc != 0)
        return rc < 0 ? rc : 1;
    rc = run(db,
             "CREATE TABLE IF NOT EXISTS migrations ("
             "version INTEGER PRIMARY KEY, name TEXT NOT NULL, sha256 TEXT NOT NULL, "
             "applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')))",
             message);
    for (size_t i = (size_t)version; i < migrations_sqlite_count && rc == 0; i++) {
        rc = run(db, migrations_sqlite[i].sql, message);
        if (rc == 0)
            rc = note_version(db, &migrations_sqlite[i], message);
        ++*applied;
    }
    return rc;
}

static int init_open(sqlite3 *db, int *applied, char message[SCHEMA_MESSAGE_BYTES])
{
    if (sqlite3_busy_timeout(db, LOCK_WAIT_MS) != SQLITE_OK)
        return say(db, message);
    int rc = run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", message);
    if (rc == 0)
        rc = run(db, "BEGIN IMMEDIATE", message);
    if (rc != 0)
        return rc;
    rc = migrate(db, applied, message);
    if (rc == 0)
        rc = run(db, "COMMIT", message);
    if (rc != 0)
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
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

/*
 * migrations.c - embeds the migrations, each as one NUL-terminated text in read-only data.
 *
 * The assembler includes the files, with paths from the top of the tree, where the compiler runs;
 * the Makefile makes this object depend on them.
 */
#include "sinks/migrations.h"

#include <stdio.h>
#include <string.h>

#define EMBED(symbol, path)                              \
    __asm__(".pushsection .rodata\n"                     \
            ".type " #symbol ", @object\n" #symbol ":\n" \
            ".incbin \"" path "\"\n"                     \
            ".byte 0\n"                                  \
            ".size " #symbol ", . - " #symbol "\n"       \
            ".popsection\n");                            \
    extern const char(symbol)[] __attribute__((visibility("hidden")))

EMBED(sqlite_001_tables, "sinks/sqlite/001_tables.sql");
EMBED(sqlite_002_guards, "sinks/sqlite/002_guards.sql");
EMBED(sqlite_003_views, "sinks/sqlite/003_views.sql");
EMBED(postgres_001_tables, "sinks/postgres/001_tables.sql");
EMBED(postgres_002_partitions, "sinks/postgres/002_partitions.sql");
EMBED(postgres_003_guards, "sinks/postgres/003_guards.sql");
EMBED(postgres_004_hash, "sinks/postgres/004_hash.sql");
EMBED(postgres_005_verify, "sinks/postgres/005_verify.sql");
EMBED(postgres_006_retirement, "sinks/postgres/006_retirement.sql");
EMBED(postgres_007_roles, "sinks/postgres/007_roles.sql");
EMBED(postgres_008_views, "sinks/postgres/008_views.sql");
EMBED(postgres_009_structure, "sinks/postgres/009_structure.sql");

const struct migration migrations_sqlite[] = {
    {1, "tables", sqlite_001_tables},
    {2, "guards", sqlite_002_guards},
    {3, "views", sqlite_003_views},
};
const size_t migrations_sqlite_count = AR_COUNT(migrations_sqlite);

const struct migration migrations_postgres[] = {
    {1, "tables", postgres_001_tables},       {2, "partitions", postgres_002_partitions},
    {3, "guards", postgres_003_guards},       {4, "hash", postgres_004_hash},
    {5, "verify", postgres_005_verify},       {6, "retirement", postgres_006_retirement},
    {7, "roles", postgres_007_roles},         {8, "views", postgres_008_views},
    {9, "structure", postgres_009_structure},
};
const size_t migrations_postgres_count = AR_COUNT(migrations_postgres);

int migrations_digest(const struct migration *migration, char out[DIGEST_HEX_BYTES])
{
    return digest_hex(migration->sql, strlen(migration->sql), out);
}

const char migrations_too_old[] = "this ledger is older than the first release of auditrun, which "
                                  "cannot bring it to its version: "
                                  "make a new one";

int migrations_check(const struct migration *migrations, size_t count, int version,
                     const char *stored_version, const char *stored_sha256, char *message,
                     size_t size)
{
    char digest[DIGEST_HEX_BYTES], expected[16];
    message[0] = '\0';
    if ((size_t)version >= count) {
        (void)snprintf(message, size,
                       "this ledger is newer than this program, which knows it up to version %zu",
                       count);
        return 1;
    }
    int rc = migrations_digest(&migrations[version], digest);
    if (rc < 0)
        return rc;
    (void)snprintf(expected, sizeof(expected), "%d", migrations[version].version);
    if (strcmp(expected, stored_version) == 0 && strcmp(digest, stored_sha256) == 0)
        return 0;
    (void)snprintf(
        message, size,
        "migration %d (%s) of this ledger is not that of this program: another version of "
        "auditrun made it",
        migrations[version].version, migrations[version].name);
    return 1;
}

int migrations_newest(const struct migration *migrations, size_t count)
{
    return count > 0 ? migrations[count - 1].version : 0;
}

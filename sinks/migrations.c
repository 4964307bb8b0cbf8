/*
 * migrations.c - embeds the migrations, each as one NUL-terminated text in read-only data.
 *
 * The assembler includes the files, with paths from the top of the tree, where the compiler runs;
 * the Makefile makes this object depend on them.
 */
#include "sinks/migrations.h"

#define EMBED(symbol, path)                              \
    __asm__(".pushsection .rodata\n"                     \
            ".type " #symbol ", @object\n" #symbol ":\n" \
            ".incbin \"" path "\"\n"                     \
            ".byte 0\n"                                  \
            ".size " #symbol ", . - " #symbol "\n"       \
            ".popsection\n");                            \
    extern const char(symbol)[] __attribute__((visibility("hidden")))

EMBED(sqlite_001_ledger, "sinks/sqlite/001_ledger.sql");
EMBED(postgres_001_tables, "sinks/postgres/001_tables.sql");
EMBED(postgres_002_partitions, "sinks/postgres/002_partitions.sql");
EMBED(postgres_003_guards, "sinks/postgres/003_guards.sql");
EMBED(postgres_004_hash, "sinks/postgres/004_hash.sql");

const struct migration migrations_sqlite[] = {
    {1, "ledger", sqlite_001_ledger},
};
const size_t migrations_sqlite_count = AR_COUNT(migrations_sqlite);

const struct migration migrations_postgres[] = {
    {1, "tables", postgres_001_tables},
    {2, "partitions", postgres_002_partitions},
    {3, "guards", postgres_003_guards},
    {4, "hash", postgres_004_hash},
};
const size_t migrations_postgres_count = AR_COUNT(migrations_postgres);

int migrations_newest(const struct migration *migrations, size_t count)
{
    return count > 0 ? migrations[count - 1].version : 0;
}

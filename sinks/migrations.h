/*
 * migrations.h - the SQL that brings a store to the newest version, embedded in the program.
 *
 * The texts are the files sinks/sqlite/NNN_what.sql and sinks/postgres/NNN_what.sql as they are in
 * the tree. A migration that was released is never changed: what comes later is a new file, with a
 * new row in the table of migrations.c.
 */
#ifndef AUDITRUN_SINKS_MIGRATIONS_H
#define AUDITRUN_SINKS_MIGRATIONS_H

#include "protocol/base.h"

struct migration {
    int version; /* from 1 without holes */
    const char *name;
    const char *sql; /* statements, NUL-terminated */
};

/* In the order of version. */
extern const struct migration migrations_sqlite[];
extern const size_t migrations_sqlite_count;
extern const struct migration migrations_postgres[];
extern const size_t migrations_postgres_count;

/* What a store must have for the sinks to work with it. */
int migrations_newest(const struct migration *migrations, size_t count);

#endif

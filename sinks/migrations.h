/*
 * migrations.h - the SQL that brings a store to the newest version, embedded in the program.
 *
 * The texts are the files sinks/sqlite/NNN_what.sql and sinks/postgres/NNN_what.sql as they are in
 * the tree. A migration that was released is never changed: what comes later is a new file, with a
 * new row in the table of migrations.c.
 */
#ifndef AUDITRUN_SINKS_MIGRATIONS_H
#define AUDITRUN_SINKS_MIGRATIONS_H

#include "protocol/digest.h"

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

/* Hex SHA-256 of its text. 0, -EIO. */
int migrations_digest(const struct migration *migration, char out[DIGEST_HEX_BYTES]) AR_MUST_CHECK;

/* A store keeps the digests of the migrations that it went through, so that it is never taken for one
 * that it is not. Is this row of its list the one that must come after `version` others? 0 yes, 1 no
 * (message, of size bytes, says so to an operator), -EIO. */
int migrations_check(const struct migration *migrations, size_t count, int version,
                     const char *stored_version, const char *stored_sha256, char *message,
                     size_t size) AR_MUST_CHECK;
/* What to say of a store that keeps no digests. */
extern const char migrations_too_old[];

/* What a store must have for the sinks to work with it. */
int migrations_newest(const struct migration *migrations, size_t count);

#endif

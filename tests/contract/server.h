/*
 * server.h - one PostgreSQL server for all tests of a contract test program: a fixture for
 * tcase_add_unchecked_fixture().
 *
 * Header only: each test program is one file.
 */
#ifndef AUDITRUN_TESTS_CONTRACT_SERVER_H
#define AUDITRUN_TESTS_CONTRACT_SERVER_H

#include "tests/lib/postgres.h"

#include <check.h>

static struct postgres_server *server;

static inline void start_server(void)
{
    server = postgres_start();
    ck_assert_ptr_nonnull(server);
}

static inline void stop_server(void)
{
    postgres_free(server);
    server = NULL;
}

#endif

/*
 * proxy.h - stands between a sink and its PostgreSQL server, for a test, and does at COMMIT what
 * networks do: it loses the question, the answer, or time.
 *
 * It has a thread of its own and follows what clients send as far as it is not encrypted. All
 * functions may be called at any time from the test's thread.
 */
#ifndef AUDITRUN_TESTS_LIB_PROXY_H
#define AUDITRUN_TESTS_LIB_PROXY_H

#include "protocol/base.h"

struct proxy;

enum proxy_act {
    PROXY_PASS,
    PROXY_CUT_BEFORE, /* COMMIT is lost: both ways are cut before it is passed on */
    PROXY_CUT_AFTER,  /* its answer is lost: both ways are cut when it has come */
    /* Neither COMMIT nor anything after it is passed on, until it is released; that is then so even
     * when the client has left in between. */
    PROXY_HOLD_BEFORE,
    PROXY_HOLD_AFTER /* COMMIT is passed on, the answer is held back */
};

/* Listens on a socket for PostgreSQL clients, or on 127.0.0.1 (tcp), and connects to the socket of
 * the server at upstream. NULL, with the reason on the standard error, when that is not possible. */
struct proxy *proxy_start(const char *upstream, bool tcp) AR_MUST_CHECK;
/* Cuts all connections. NULL is harmless. */
void proxy_free(struct proxy *proxy);

/* For the connection string: "host=... port=...". */
#define PROXY_HOST_BYTES 128
void proxy_host(const struct proxy *proxy, char host[PROXY_HOST_BYTES]);
int proxy_port(const struct proxy *proxy);

/* What happens to the next so many COMMITs; then they pass again. */
void proxy_set(struct proxy *proxy, enum proxy_act act, unsigned count);
/* Waits until so many COMMITs have been acted on since the start (for PROXY_CUT_AFTER and
 * PROXY_HOLD_AFTER: the server's answer is there); false when that takes too long. */
bool proxy_wait(struct proxy *proxy, unsigned count) AR_MUST_CHECK;
/* How many have been. */
unsigned proxy_acted(struct proxy *proxy);
/* What is held goes on. */
void proxy_release(struct proxy *proxy);
/* Cuts every connection now. */
void proxy_cut(struct proxy *proxy);
/* New connections go elsewhere: another server has the address now. */
void proxy_retarget(struct proxy *proxy, const char *upstream);
/* How many connections were made through it. */
unsigned proxy_connections(struct proxy *proxy);

#endif

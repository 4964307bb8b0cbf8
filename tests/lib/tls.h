/*
 * tls.h - certificates for a test: an authority of its own, what it has signed, and another
 * authority that nobody knows. Made by the program openssl, in a folder that is gone at the end.
 */
#ifndef AUDITRUN_TESTS_LIB_TLS_H
#define AUDITRUN_TESTS_LIB_TLS_H

#include "protocol/base.h"

#define TLS_PATH_BYTES 128

struct tls {
    char folder[64];
};

/* Makes these files, where the certificate of the server is for the name "localhost", and that of
 * the client for the user "tester"; the keys are readable by their owner (root's by its group):
 * ca.crt, server.crt, server.key, client.crt, client.key, other-ca.crt, other.crt, other.key.
 * False, with the reason on the standard error; tls_end() in any case. */
bool tls_begin(struct tls *tls) AR_MUST_CHECK;
void tls_end(struct tls *tls);

/* folder/name */
void tls_path(const struct tls *tls, const char *name, char path[TLS_PATH_BYTES]);

#endif

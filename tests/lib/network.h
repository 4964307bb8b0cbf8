/*
 * network.h - network namespaces that have only a loopback, as sandboxes have them, and sockets in them.
 *
 * A socket stays in the namespace that it was made in, whoever uses it: so these are made in a thread
 * that goes there, and the caller stays where it is. Needs root.
 */
#ifndef AUDITRUN_TESTS_LIB_NETWORK_H
#define AUDITRUN_TESTS_LIB_NETWORK_H

#include <netinet/in.h>
#include <stdint.h>

/* A new one, as a descriptor of it that keeps it; -errno (-EPERM: not root). */
int network_new(void);

/* A socket in it (-1: in our own) of TCP over IPv4, or -errno. listen: at the address and port of
 * *address, which gets the port that it has. connect: blocking. */
int network_listen(int network, struct sockaddr_in *address);
int network_connect(int network, const struct sockaddr_in *address);

/* Calls it in the namespace; returns what it returns, or -errno. */
int network_call(int network, int (*function)(void *context), void *context);

/* 127.0.0.1 and such. */
struct sockaddr_in network_address(const char *text, uint16_t port);

#endif

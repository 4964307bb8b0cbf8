/*
 * egress_connection.h - one connection of code to the proxy of its run.
 *
 * From the first byte to the last: what is asked for (CONNECT, one plain HTTP request, or SOCKS5),
 * whether it is granted, the way there, and the copying. A refusal is answered in the words of the
 * protocol that was spoken, with a reason of ours and never with anything that code has sent.
 */
#ifndef AUDITRUN_DAEMON_EGRESS_CONNECTION_H
#define AUDITRUN_DAEMON_EGRESS_CONNECTION_H

#include "daemon/egress_account.h"

#include <sys/queue.h>

struct egress_connection;

/* Lists of them, which egress.c keeps. */
TAILQ_HEAD(egress_connections, egress_connection);

/* Takes over the accepted socket (in every case). 0 with *out, which is in no list yet, or -ENOMEM. All
 * but fd is borrowed. */
int egress_connection_open(struct egress *egress, const struct egress_start *start,
                           struct egress_account *account, int fd,
                           struct egress_connection **out) AR_MUST_CHECK;
/* Takes it out of everything, closes it, and gives it to egress_bury(). */
void egress_connection_close(struct egress_connection *connection);
/* Frees it, after it has been closed. */
void egress_connection_bury(struct egress_connection *connection);

void egress_connection_insert(struct egress_connections *list,
                              struct egress_connection *connection);
void egress_connection_remove(struct egress_connections *list,
                              struct egress_connection *connection);

/* Of egress.c: it has been closed, and is to be freed at the end of the turn. */
void egress_bury(struct egress *egress, struct egress_connection *connection);

#endif

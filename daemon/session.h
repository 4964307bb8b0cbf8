/*
 * session.h - one connection of a client: bounded bytes in, bounded bytes out, many requests in
 * flight.
 *
 * A session stops reading while its client has too many requests in flight or too much output that
 * it has not read; a client that reads nothing for socket.stall_timeout while output waits is cut
 * off. Sessions own neither runs nor answers: whoever owes an answer embeds a struct pending, which
 * outlives the session if need be.
 */
#ifndef AUDITRUN_DAEMON_SESSION_H
#define AUDITRUN_DAEMON_SESSION_H

#include "daemon/peer.h"
#include "protocol/rpc.h"

#include <sys/queue.h>

struct line;
struct listener;
struct session;

/* An answer that is owed. Zeroed: owed to nobody. */
struct pending {
    struct session *session;               /* NULL: to nobody, or the client has gone */
    char id_text[JSON_ID_TEXT_BYTES];      /* "": a notification, which gets no answer */
    void (*gone)(struct pending *pending); /* the client has gone; may be NULL */
    TAILQ_ENTRY(pending) in_session;
};

/* Takes over a connected, non-blocking socket. 0 or -ENOMEM (the socket is then closed). */
int session_open(struct listener *listener, struct line *line, int fd,
                 const struct peer_client *client) AR_MUST_CHECK;
/* Cuts the client off: every pending answer is told. Frees the session at the end of the turn. */
void session_close(struct session *session);

/* The configuration has changed: finds the client that its peer is under it. A peer that is none any more
 * is told so; what it is owed is still sent, and then it is cut off. */
void session_rematch(struct session *session);

/* Takes no more requests. What is owed is still sent, and then the client is cut off. */
void session_finish(struct session *session);

/* Notes that an answer is owed. 0, or 1 when an answer under this id is still in flight. */
int session_owe(struct session *session, struct pending *pending, const char *id_text,
                void (*gone)(struct pending *pending)) AR_MUST_CHECK;
/* Settles what is owed. The line is freed; NULL: there was no memory for it, the client is cut
 * off. */
void session_answer(struct pending *pending, char *line, size_t length);
/* Sends a line that settles nothing (an error under a null id, a notification). Freed as above. */
void session_send(struct session *session, char *line, size_t length);
/* The run that is owed under this id text on this connection, or NULL. */
struct pending *session_find(struct session *session, const char *id_text);

const struct peer_client *session_client(const struct session *session);
struct line *session_line(const struct session *session);
/* May more be sent now without piling up? (for output notifications) */
bool session_has_room(const struct session *session);
/* Is nothing owed, and nothing on its way? */
bool session_is_flushed(const struct session *session);

/* Frees what has been closed; called by the listener at the end of the loop's turn. */
void session_bury(struct session *session);

#endif

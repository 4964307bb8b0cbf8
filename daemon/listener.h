/*
 * listener.h - the socket that clients connect to, and the sessions that came from it.
 */
#ifndef AUDITRUN_DAEMON_LISTENER_H
#define AUDITRUN_DAEMON_LISTENER_H

#include "protocol/base.h"

struct line;
struct listener;
struct session;

/* Binds socket.path (a stale socket file is taken away; a live one, or anything that is no socket, is
 * an error) and listens. inherited: a socket that listens already (activation.h), which is taken over in
 * its place, also when this fails; -1: none. 0 with *out owned, or -errno (-EADDRINUSE: another daemon
 * answers there). */
int listener_open(struct line *line, int inherited, struct listener **out) AR_MUST_CHECK;
/* No new connections from now on; those that are open go on. The socket file is taken away, unless the
 * socket was inherited: who connects to it waits for the next daemon then. */
void listener_stop(struct listener *listener);
/* Stops and closes every session. */
void listener_free(struct listener *listener);

int64_t listener_sessions(const struct listener *listener);
/* The configuration has changed: each session belongs to the client that its peer is now; where it is none,
 * it is told `forbidden` and served no more. */
void listener_rematch(struct listener *listener);
/* No more requests from now on: each session ends when all that it is owed has been sent. */
void listener_finish(struct listener *listener);
/* Has every session sent what it had to? */
bool listener_is_flushed(const struct listener *listener);

/* For session.c: a session has opened, or is closed and to be freed at the end of the turn. There is
 * always room: the listener accepts no more than socket.max_connections. */
void listener_add_session(struct listener *listener, struct session *session);
void listener_bury_session(struct listener *listener, struct session *session);

#endif

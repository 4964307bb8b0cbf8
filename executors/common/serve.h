/*
 * serve.h - the provider's side of the control socket (executor contract, docs/executors.md).
 *
 * One run at a time: say ready, receive an order with its descriptors, watch the socket while the
 * run is going, report. The daemon going away and SIGTERM are the same thing to a provider: end
 * the run, end.
 */
#ifndef AUDITRUN_EXECUTORS_COMMON_SERVE_H
#define AUDITRUN_EXECUTORS_COMMON_SERVE_H

#include "protocol/spec.h"

#define SERVE_CONTROL 3 /* the descriptor that a provider finds the control socket at */

/* Order of the descriptors that come with a run; spec.h says where the others are. */
enum serve_descriptor {
    SERVE_SPEC,
    SERVE_STDIN,
    SERVE_STDOUT,
    SERVE_STDERR,
    SERVE_OUTPUTS,
    SERVE_DATA_PORT
};

struct serve {
    int control; /* borrowed: descriptor 3 */
    int signals; /* signalfd of SIGTERM, SIGINT and SIGHUP, owned */
};

/* One run message. The descriptors are owned, close-on-exec, -1 when handed over. */
struct serve_order {
    struct spec_run run;
    int descriptors[SPEC_MAX_DESCRIPTORS]; /* spec_run_descriptors() of them */
};

/* Why a wait came back. */
enum serve_event {
    SERVE_EVENT = 0, /* what was waited for is there */
    SERVE_GONE = 1   /* end of file, a message out of turn, or a signal to end: stop everything */
};

/* Takes descriptor 3, which must be a SOCK_SEQPACKET socket, blocks the signals that end a provider
 * and opens their signalfd. 0; -ENOTSOCK or -EPROTOTYPE for any other descriptor; -errno. */
int serve_open(struct serve *serve) AR_MUST_CHECK;
/* Closes what serve_open() opened. */
void serve_close(struct serve *serve);

/* Tells the daemon that a run can come; ahead: and that it wants to be told when the run's leftovers
 * were looked for (serve_await_clear()). 0, -ENOMEM or -errno. */
int serve_ready(const struct serve *serve, bool ahead) AR_MUST_CHECK;

/* Waits for the next run. SERVE_EVENT with *order owned (serve_order_close()), SERVE_GONE, -EPROTO
 * for a message that is no order or has the wrong descriptors, or -errno. */
int serve_receive(const struct serve *serve, struct serve_order *order) AR_MUST_CHECK;
void serve_order_close(struct serve_order *order);

/* After a report, for a provider that is ready ahead: waits until the daemon has looked for what the
 * run left. Results as serve_receive(). */
int serve_await_clear(const struct serve *serve) AR_MUST_CHECK;

/* Waits until fd can be read (a pidfd: its process has ended) or the provider has to end.
 * SERVE_EVENT, SERVE_GONE or -errno. */
int serve_wait(const struct serve *serve, int fd) AR_MUST_CHECK;
/* The same of a process whose child receives the messages: they are no reason to end. */
int serve_watch(const struct serve *serve, int fd) AR_MUST_CHECK;

/* Hands the daemon the socket that listens in the run's network, before the code starts. 0, -ENOMEM or
 * -errno. */
int serve_listener(const struct serve *serve, int listener) AR_MUST_CHECK;

/* Sends the one report of a run. 0, -ENOMEM or -errno. */
int serve_report(const struct serve *serve, const struct report *report) AR_MUST_CHECK;

#endif

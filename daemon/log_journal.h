/*
 * log_journal.h - the native protocol of systemd's journal, as plain as it is: one datagram an entry,
 * one line a field (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
 */
#ifndef AUDITRUN_DAEMON_LOG_JOURNAL_H
#define AUDITRUN_DAEMON_LOG_JOURNAL_H

#include "daemon/log.h"

/* Is this descriptor what the service manager has connected to the journal (JOURNAL_STREAM)? */
bool log_journal_is_stream(int fd);
/* A socket that is connected to the journal, non-blocking; or -errno. */
int log_journal_connect(const char *path) AR_MUST_CHECK;
/* Sends an entry. priority as in syslog(3). 0, or -errno: it is not there (-EAGAIN: the journal does not
 * keep up), or -EMSGSIZE: more than its lines can have (log.c never makes that). */
int log_journal_send(int fd, int priority, const char *message, const struct log_field *fields,
                     size_t count) AR_MUST_CHECK;

#endif

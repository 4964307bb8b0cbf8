/*
 * daemon.h - the real auditrund for a test, with a folder, a configuration and a ledger of its own.
 *
 * Programs come from $AUDITRUN_BUILD, the languages (those that are quick to try: tests/languages.d)
 * from $AUDITRUN_SOURCE. Every function ends the test when it cannot do what it says. A keeper process
 * clears away what a test that fails leaves (daemon, its control groups, the folder) and prints the end
 * of the daemon's log.
 *
 * daemon_free() holds the daemon to what it promises: that nothing of it is left.
 */
#ifndef AUDITRUN_TESTS_LIB_DAEMON_H
#define AUDITRUN_TESTS_LIB_DAEMON_H

#include "tests/lib/client.h"
#include "tests/lib/processes.h"
#include "tests/lib/rows.h"

#define DAEMON_START_MS 30000
#define DAEMON_END_MS   30000

struct daemon;

/* All zero: the defaults, which are those of daemon.c (write_config()). */
struct daemon_options {
    /* More of the configuration. A key that it has replaces the default; a bare section line
     * ("[client local]") with "-" as its only key takes the default section away:
     *     "[client local]\n-\n[client other]\nuid = 1\ncompanies = *\n" */
    const char *config;
    const char *ledger_url;         /* NULL: a SQLite ledger in the folder */
    bool without_ledger;            /* the ledger is not made ready */
    const char *const *environment; /* NAME=VALUE..., NULL at the end: added to our own */
    const int *sockets; /* given to it as a service manager does (LISTEN_FDS), borrowed */
    size_t socket_count;
};

/* Makes the folder and the ledger, starts the daemon and waits until it answers `status`. */
struct daemon *daemon_new(const struct daemon_options *options);
/* The same without the start, for a test that has to put more into the folder first. */
struct daemon *daemon_prepare(const struct daemon_options *options);
/* Starts it (again), with the same configuration, folder and ledger; waits as above. */
void daemon_start_again(struct daemon *daemon);
/* Starts it, and waits for its end: the exit status. For a daemon that must not start. */
int daemon_start_in_vain(struct daemon *daemon);
/* Starts it without waiting for anything; daemon_await() waits then. */
void daemon_launch(struct daemon *daemon);
void daemon_await(struct daemon *daemon);
/* The same with the daemon that has fault points (daemon/fault.h): AUDITRUND_FAULT is fault. It kills
 * itself at the point that is named there, whether or not it has answered before. */
void daemon_launch_fault(struct daemon *daemon, const char *fault);
/* Has it ended? Then, like daemon_wait(), its status is in *status. For a test that does something
 * until it does. */
bool daemon_has_ended(struct daemon *daemon, int *status);
/* Waits until the fault has killed it. What was below it may live on for a moment, as above. */
void daemon_await_fault(struct daemon *daemon);
/* Writes the configuration anew, from these defaults and this text (as above). */
void daemon_configure(struct daemon *daemon, const char *config);

/* SIGKILL, and waits for it. What was below it may live on for a moment: daemon_expect_nothing(). */
void daemon_kill9(struct daemon *daemon);
/* SIGTERM, and waits: the exit status, or 128 and the signal that ended it. */
int daemon_terminate(struct daemon *daemon);
/* Waits for its end, whatever leads to it. */
int daemon_wait(struct daemon *daemon);
/* After the end: no process that was below it, no mount; within so many ms. The control groups of a
 * daemon that was killed are only removed by the next one. */
void daemon_expect_nothing(struct daemon *daemon, int64_t ms);

/* Terminates it if it runs, which must end with status 0, and asserts that nothing is left: no
 * process, no control group, no mount, no socket. Removes the folder. NULL is harmless. */
void daemon_free(struct daemon *daemon);

pid_t daemon_pid(const struct daemon *daemon); /* 0: does not run */
const char *daemon_folder(const struct daemon *daemon);
const char *daemon_socket(const struct daemon *daemon);
const char *daemon_ledger(const struct daemon *daemon); /* its URL */
const char *daemon_log(const struct daemon *daemon);    /* the path */
const char *daemon_config(const struct daemon *daemon); /* the path */
const char *daemon_journal(const struct daemon *daemon);
/* A path in the folder: "FOLDER/name", malloc'd. */
char *daemon_path(const struct daemon *daemon, const char *name);
/* The whole log: malloc'd, NUL-terminated. */
char *daemon_read_log(const struct daemon *daemon);

/* Connects to it. */
struct client *daemon_connect(const struct daemon *daemon);
/* Processes below it now. */
struct processes daemon_processes(const struct daemon *daemon);

/* A whole file: malloc'd, NUL-terminated; and the other way round. */
char *daemon_read_file(const char *path);
void daemon_write_file(const char *path, const char *text, mode_t mode);

#endif

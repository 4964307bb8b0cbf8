/*
 * executor.h - the daemon's side of the executor contract, as small as tests need it.
 *
 * Starts a provider of any executor program, has it do runs, and collects everything that comes
 * back. Every wait has a deadline; an executor that misses it fails the test, and is killed.
 */
#ifndef AUDITRUN_TESTS_LIB_EXECUTOR_H
#define AUDITRUN_TESTS_LIB_EXECUTOR_H

#include "protocol/envelope.h"
#include "protocol/spec.h"

#define EXECUTOR_MAX_WORDS 16
#define EXECUTOR_WAIT_MS   20000

struct executor {
    pid_t pid;   /* of the provider; 0: not there (any more) */
    int control; /* our end of the control socket; -1: closed */
    int status;  /* of waitpid(), when it has ended */
    bool ahead;  /* it prepares ahead, and waits for `clear` after a report: */
    bool owes_clear;
};

/* What comes with the order of a run beside its spec and streams; all zero but the descriptors:
 * nothing. */
struct executor_gifts {
    int data_port; /* the code's end; -1: none; borrowed */
    int secrets;   /* a memory file; -1: none; borrowed */
    const int *paths;
    size_t path_count;
};
#define EXECUTOR_NO_GIFTS ((struct executor_gifts){.data_port = -1, .secrets = -1})

/* What a run gave back. */
struct executor_result {
    bool reported;
    int listener; /* that the provider handed over, owned; -1: none */
    struct report report;
    struct bytes out, err;
    struct bytes outputs; /* the text of the document, empty when there is none */
};

/* A run that is on its way. All zero but the descriptors: nothing. */
struct executor_run {
    int input, out, err, outputs;
    const struct bytes *stdin_bytes; /* borrowed */
    size_t fed;
    struct executor_result *result; /* borrowed */
};

/* Runs `words... capabilities` and reads its envelope. False, with a word on stderr, when it does
 * not exit 0 within the ten seconds of the contract or does not print an envelope. */
bool executor_envelope(const char *const *words, struct envelope *envelope) AR_MUST_CHECK;

/* Starts `words... serve` and waits until it is ready. False when it does not get so far. slot is
 * the value of AUDITRUN_SLOT. */
bool executor_start(struct executor *executor, const char *const *words,
                    const char *slot) AR_MUST_CHECK;
/* The same for a provider whose runs may reach this: the value of AUDITRUN_REACH. */
bool executor_start_reaching(struct executor *executor, const char *const *words, const char *slot,
                             const char *reach) AR_MUST_CHECK;
/* Closes the control socket and waits for the provider to go; kills it if it does not. False if it
 * had to be killed. Harmless on one that has ended. */
bool executor_stop(struct executor *executor);
/* Sends a signal to the provider; waits for its end. False when it does not end in time. */
bool executor_signal(struct executor *executor, int number) AR_MUST_CHECK;
bool executor_ended(struct executor *executor) AR_MUST_CHECK; /* waits for it */

/* Sends one run. The request and *result are borrowed until executor_finish(). False: not sent. */
bool executor_send(struct executor *executor, const struct request *request,
                   struct executor_result *result, struct executor_run *run) AR_MUST_CHECK;
bool executor_send_with(struct executor *executor, const struct request *request,
                        const struct executor_gifts *gifts, struct executor_result *result,
                        struct executor_run *run) AR_MUST_CHECK;
/* Feeds and reads until the report is there (or the provider is gone) and both streams have ended.
 * False when that does not happen in time. Call executor_run_close() after. */
bool executor_finish(struct executor *executor, struct executor_run *run) AR_MUST_CHECK;
/* Reads until the code has printed this text. False when it does not. */
bool executor_await_output(struct executor *executor, struct executor_run *run,
                           const char *text) AR_MUST_CHECK;
void executor_run_close(struct executor_run *run);
/* Waits for the message that says ready for another run. */
bool executor_await_ready(struct executor *executor) AR_MUST_CHECK;

/* All of that for one run. *result is owned (executor_result_free()). */
bool executor_do(struct executor *executor, const struct request *request,
                 struct executor_result *result) AR_MUST_CHECK;
bool executor_do_with(struct executor *executor, const struct request *request,
                      const struct executor_gifts *gifts,
                      struct executor_result *result) AR_MUST_CHECK;
void executor_result_free(struct executor_result *result);

#endif

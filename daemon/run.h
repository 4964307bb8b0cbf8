/*
 * run.h - a run, and the line that it walks.
 *
 * A run is a parcel on a line: received, admitted, queued, noted, running, ended, decided, recorded,
 * answered. The stage table in run.c holds the line; read it first. A stage is handed the run, does
 * its part, and calls done exactly once, at once or later. No stage calls another. Only run.c moves a
 * run, always forwards. A run that ends early (denied, refused, cancelled) skips the stages up to the
 * verdict and walks on from there: there is one way to the ledger.
 *
 * Whoever wants a run to stop (client, clock, output cap, shutdown) says so with run_stop(): a flag
 * that the current stage looks at. The first cause wins and is never changed.
 */
#ifndef AUDITRUN_DAEMON_RUN_H
#define AUDITRUN_DAEMON_RUN_H

#include "daemon/id_clock.h"
#include "daemon/peer.h"
#include "daemon/session.h"
#include "protocol/envelope.h"
#include "protocol/record.h"
#include "protocol/request.h"
#include "protocol/spec.h"

#include <sys/queue.h>

struct claim;
struct config;
struct evbuffer;
struct event;
struct event_base;
struct execution;
struct executor;
struct journal;
struct latency;
struct ledger;
struct metrics;
struct overview;
struct queue;
struct queue_client;
struct queue_company;
struct registry;
struct resolver;
struct run;
struct switches;
struct secrets;

enum run_state {
    RUN_RECEIVED,
    RUN_ADMITTED, /* may run: waits for its turn */
    RUN_QUEUED,   /* its turn has come: the intent is made durable */
    RUN_NOTED,    /* the intent is durable: an idempotency key is claimed */
    RUN_RUNNING,  /* is at a provider */
    RUN_ENDED,    /* nothing of it is left */
    RUN_DECIDED,  /* has its terminal status and its record */
    RUN_RECORDED, /* the record is committed, or kept, or the caller is told that it is not */
    RUN_ANSWERED,
    RUN_STATE_COUNT
};

enum run_stop {
    RUN_STOP_NONE,
    RUN_STOP_WALL,
    RUN_STOP_OUTPUT,
    RUN_STOP_CPU,
    RUN_STOP_CANCELLED,
    RUN_STOP_GONE,
    RUN_STOP_SHUTDOWN
};

enum run_audit {
    RUN_AUDIT_COMMITTED, /* the record is in the ledger */
    RUN_AUDIT_KEPT,      /* it is safe in the journal and will be appended later */
    RUN_AUDIT_AT_RISK    /* it is in memory only: the journal could not take it either */
};

/* Where the committed record stands. */
struct run_place {
    char writer[UUID7_TEXT_BYTES];
    int64_t seq;
    char hash[DIGEST_HEX_BYTES];
};

typedef void run_done_fn(struct run *run);

struct run {
    char id[UUID7_TEXT_BYTES];
    struct line *line;
    const struct config *config; /* under which it was received; held */
    enum run_state state;
    bool at_stage; /* a stage has it and has not called done */
    TAILQ_ENTRY(run) in_line;

    struct peer_client client;
    struct request *request; /* owned */
    struct pending pending;  /* who waits for the answer */

    enum run_stop stop;
    /* Set by a stage before RUN_ENDED when the run does not get to run (or its end is decided there);
     * else filled in by the verdict. */
    enum status status;
    enum reason reason;

    /* admission */
    struct executor *executor; /* held; NULL: none was chosen (run_choose) */
    struct denials denials;
    char envelope_sha256[DIGEST_HEX_BYTES];
    struct secrets *secrets; /* owned; NULL: none are granted */

    /* queue */
    bool has_place;
    struct queue_company *queue_company; /* while it waits or has a place; the queue's */
    struct queue_client *queue_client;   /* the same */
    struct event *queue_timer;
    TAILQ_ENTRY(run) in_queue;

    /* journal, claim */
    bool noted;
    /* The idempotency key belongs to another run: this one leaves no record. It is answered from
     * replay, the record of that run, or, when replay is NULL, with an error: the other run was
     * another request. */
    bool withdrawn;
    struct record *replay;
    struct claim *claim;
    struct event *claim_timer;
    int64_t claim_give_up_us; /* monotonic */

    /* execution */
    struct execution *execution;
    bool reported; /* the provider's report is there: from now on nothing can stop the run */
    struct report report;
    enum reason failure; /* of the provider, REASON_NONE if none */
    /* By the host's own counters (cgroup.h). */
    bool memory_exceeded, killed_for_host, processes_exceeded, cpu_exceeded;
    struct evbuffer *output[2]; /* stdout, stderr; NULL until there is some */
    bool truncated[2];
    struct output_file *outputs; /* one for each of request->outputs, or NULL */
    struct usage usage;
    json_t *network_hosts; /* of usage.network, for the caller alone; owned, may be NULL */

    int64_t received_us, started_us, finished_us; /* wall clock; started_us 0: never started */

    /* record, ledger */
    struct record *record; /* from the verdict until the ledger takes it */
    struct run_place place;
    enum run_audit audit;

    int64_t since_us; /* monotonic: when it came */
    int64_t moved_us; /* monotonic: when it got into its present state */
};

TAILQ_HEAD(run_list, run);

/* The line and what stands along it. Made and ended by service.c. */
struct line {
    struct event_base *base;
    const struct config *config; /* in force now; held by the service */
    struct registry *registry;
    struct queue *queue;
    struct journal *journal;
    struct ledger *ledger;
    struct resolver *resolver;
    struct switches *switches;
    struct signer *signer; /* NULL: checkpoints are not made */
    struct uuid7_generator ids;
    struct id_clock id_clock;
    struct run_list runs; /* all that have not been answered */
    struct run_list dead; /* freed at the end of the loop's turn */
    struct event *bury;
    int id_space; /* with the ids of slots (daemon/idspace.h), borrowed; -1: none */
    size_t in_state[RUN_STATE_COUNT]; /* how many of the runs */
    struct latency *latency;          /* of the loop, while there are runs */
    struct metrics *metrics;
    struct overview *overview;
    bool draining;
    int64_t total;
    int64_t started_us;          /* monotonic */
    void (*emptied)(void *main); /* called when draining and the last run has been answered */
    void *main;
};

/* 0 or -ENOMEM (run_line_free all the same). Holds the configuration. The services are put in by
 * service.c. */
int run_line_init(struct line *line, struct event_base *base,
                  const struct config *config) AR_MUST_CHECK;
/* Frees the runs that have been answered: before what they needed is taken down. */
void run_line_bury(struct line *line);
void run_line_free(struct line *line);

/* An id for a run, or for an event: greater than all before it. 0, -EIO: no random bytes. */
int run_make_id(struct line *line, char id[UUID7_TEXT_BYTES]) AR_MUST_CHECK;

/* A run that has been received: takes over the request. NULL when out of memory (the request is
 * freed). */
struct run *run_new(struct line *line, const struct peer_client *client,
                    struct request *request) AR_MUST_CHECK;
/* Puts it on the line. The run frees itself after its answer. */
void run_start(struct run *run);

/* Asks that the run stop. True if it will end with this cause; false when it has ended already or
 * something else stopped it first. */
bool run_stop(struct run *run, enum run_stop cause);
/* How a run ends that was stopped for this cause. */
enum reason run_stop_reason(enum run_stop cause);

/* For admission: the executor that the run is compared with, in place of the one before. */
void run_choose(struct run *run, struct executor *executor);
/* For stages before RUN_ENDED: the run's end is decided. */
void run_end(struct run *run, enum reason reason);
bool run_has_ended(const struct run *run);

/* The run of that id that has not been answered, or NULL. */
struct run *run_find(struct line *line, const char *id);
/* Runs in states [from, to). */
size_t run_count(const struct line *line, enum run_state from, enum run_state to);

const char *run_state_word(enum run_state state);

#endif

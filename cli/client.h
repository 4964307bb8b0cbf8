/*
 * client.h - one connection to the daemon, from the caller's side.
 *
 * Blocking for the caller, never for ever: each wait is a poll() with a deadline, and signals that
 * the caller watches (a signalfd) end it. Requests carry ids chosen by the caller, answers come in
 * any order with the id that they belong to.
 */
#ifndef AUDITRUN_CLI_CLIENT_H
#define AUDITRUN_CLI_CLIENT_H

#include "protocol/rpc.h"

#define CLIENT_FOREVER  INT64_C(-1)
#define CLIENT_MAX_LINE ((size_t)256 << 20) /* the longest answer: 64 MiB of outputs in base64 */

struct client;

enum client_outcome {
    CLIENT_OK = 0,
    CLIENT_LATE = 1,     /* the deadline passed */
    CLIENT_CLOSED = 2,   /* the daemon closed the connection */
    CLIENT_NONSENSE = 3, /* what came is not an answer of JSON-RPC 2.0 */
    CLIENT_SIGNALED = 4  /* the watched descriptor is readable */
};

/* One answer: either result or error is set, both owned (client_answer_free). */
struct client_answer {
    char id_text[JSON_ID_TEXT_BYTES];
    json_t *result;
    json_t *error;
};
void client_answer_free(struct client_answer *answer);

/* A deadline so many ms from now, on the monotonic clock; CLIENT_FOREVER stays itself. */
int64_t client_deadline(int64_t ms);

/* Connects. 0 with *out owned, CLIENT_LATE, or -errno (-ENAMETOOLONG, -ENOENT, -ECONNREFUSED...). */
int client_open(const char *path, int64_t deadline, struct client **out) AR_MUST_CHECK;
void client_close(struct client *client);
static inline void client_cleanup(struct client **client)
{
    client_close(*client);
}

/* From now on waits end with CLIENT_SIGNALED while fd is readable; -1: none. Borrowed. */
void client_watch(struct client *client, int fd);

/* From now on notifications of the daemon go to notice, from within client_receive(); NULL: they are
 * passed over. */
typedef void client_notice_fn(void *context, const char *method, const json_t *params);
void client_listen(struct client *client, client_notice_fn *notice, void *context);

/* Sends one request. CLIENT_OK also when the daemon closed meanwhile: it may have answered first,
 * so client_receive() tells. After CLIENT_LATE or CLIENT_SIGNALED the connection is of no more
 * use. -errno. */
int client_send(struct client *client, const char *id_text, enum rpc_method method,
                const json_t *params, int64_t deadline) AR_MUST_CHECK;

/* The next answer, whatever its id. An enum client_outcome or -errno. */
int client_receive(struct client *client, int64_t deadline,
                   struct client_answer *answer) AR_MUST_CHECK;

#endif

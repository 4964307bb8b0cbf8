/*
 * data_service.h - a host service behind the data port, as docs/data-port.md has it: good, and bad on
 * request.
 *
 * JSON-RPC lines over a Unix socket, a thread a connection. Methods:
 *   invoices.read   {"company": that of the context, "invoices": [...]}
 *   echo            {"context": ..., "params": ...}, as they came
 *   fail            an error of its own: 4711, "no such invoice", with data
 *   slow            like echo, a byte a write
 *   later           like echo, but after the next call has been answered
 *   hang            nothing
 *   die             the connection ends; half: after half of an answer
 *   rubbish, list, no_message, both, neither, wrong_id, unasked, repeated: answers that are none
 *   too_big         {"text": params.bytes times "x"}
 */
#ifndef AUDITRUN_TESTS_LIB_DATA_SERVICE_H
#define AUDITRUN_TESTS_LIB_DATA_SERVICE_H

#include "protocol/base.h"

#include <sys/types.h>

struct data_service {
    char path[108];
    pid_t pid;
};

/* Listens on the path. The descriptor, or -1 with errno. */
int data_service_listen(const char *path) AR_MUST_CHECK;
/* Serves on a listening socket, for good. */
_Noreturn void data_service_serve(int listener);

/* In a process of its own, which ends with this one. False with the reason on the standard error. */
bool data_service_start(struct data_service *service, const char *path) AR_MUST_CHECK;
/* Kills it, and takes the socket away. Safe on a zeroed one. */
void data_service_stop(struct data_service *service);

#endif

/*
 * descriptors.h - what is handed to a provider with a run (executor contract): the sealed spec, the
 * code's standard streams, and the file that outputs come back in.
 */
#ifndef AUDITRUN_DAEMON_DESCRIPTORS_H
#define AUDITRUN_DAEMON_DESCRIPTORS_H

#include "protocol/spec.h"

struct descriptors {
    int provider[SPEC_MAX_DESCRIPTORS]; /* the provider's ends, in the order of spec.h */
    int output[2];                      /* the daemon's ends of stdout and stderr, non-blocking */
    int outputs;                        /* the daemon's own view of the outputs file */
};

void descriptors_init(struct descriptors *descriptors);
/* Opens the first SPEC_DESCRIPTORS for a run under its effective grant. 0 with *order, or -errno. */
int descriptors_open(struct descriptors *descriptors, const char *run_id,
                     const struct request *request, struct spec_run *order) AR_MUST_CHECK;
/* Closes the provider's ends, which it has now. */
void descriptors_close_provider(struct descriptors *descriptors);
void descriptors_free(struct descriptors *descriptors);

/* Reads what the provider wrote to the outputs file. 0 with *files owned, 1 when it is not what was
 * asked for, -errno. */
int descriptors_read_outputs(const struct descriptors *descriptors, const struct text_list *asked,
                             struct output_file **files) AR_MUST_CHECK;

#endif

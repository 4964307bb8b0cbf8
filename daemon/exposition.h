/*
 * exposition.h - numbers as text for Prometheus: its own format 0.0.4, or OpenMetrics 1.0.
 *
 * A document is a row of families; a family has a name, a type, a line of help, and samples that differ
 * in their labels. Names and labels are ours; what a label says is escaped all the same.
 */
#ifndef AUDITRUN_DAEMON_EXPOSITION_H
#define AUDITRUN_DAEMON_EXPOSITION_H

#include "daemon/histogram.h"

struct evbuffer;

enum exposition_type {
    EXPOSITION_COUNTER,   /* only rises; its samples are called NAME_total */
    EXPOSITION_GAUGE,     /* rises and falls */
    EXPOSITION_INFO,      /* is always 1, and says what it has to say in labels: NAME_info */
    EXPOSITION_HISTOGRAM, /* NAME_bucket, NAME_sum, NAME_count */
};

struct exposition_label {
    const char *name;
    const char *value;
};
#define EXPOSITION_MAX_LABELS 4

struct exposition {
    struct evbuffer *out; /* borrowed */
    bool open_metrics;
    const char *name; /* of the family that is being written */
    enum exposition_type type;
    bool failed; /* out of memory: what was written is no document */
};

/* Begins a family. name without the suffix of its type; help is one sentence. */
void exposition_family(struct exposition *exposition, const char *name, enum exposition_type type,
                       const char *help);
/* One sample of the family. labels may be NULL when count is 0; at most EXPOSITION_MAX_LABELS. */
void exposition_number(struct exposition *exposition, const struct exposition_label *labels,
                       size_t count, int64_t value);
/* The same for a time, in seconds. */
void exposition_time(struct exposition *exposition, const struct exposition_label *labels,
                     size_t count, int64_t value_us);
/* All samples of a histogram. times: its numbers are microseconds, and are told in seconds. At most
 * EXPOSITION_MAX_LABELS - 1 labels. */
void exposition_histogram(struct exposition *exposition, const struct exposition_label *labels,
                          size_t count, const struct histogram *histogram, bool times);
/* Ends the document. 0 or -ENOMEM. */
int exposition_end(struct exposition *exposition) AR_MUST_CHECK;

/* The suffix of a sample of this type: "_total", "_info" or "". */
const char *exposition_suffix(enum exposition_type type);

#endif

/*
 * envelope.h - what an executor advertises and can really enforce, and the one function that
 * compares a grant with it.
 *
 * Contract version 1. The effective envelope is the executor's own, plus what the host enforces for
 * every executor, cut down by what the configuration allows; only that one is ever compared.
 */
#ifndef AUDITRUN_PROTOCOL_ENVELOPE_H
#define AUDITRUN_PROTOCOL_ENVELOPE_H

#include "protocol/digest.h"
#include "protocol/grant.h"

#define ENVELOPE_CONTRACT      1
#define ENVELOPE_MAX_LANGUAGES 64
#define ENVELOPE_MAX_BYTES     65536

struct envelope_language {
    char *name;
    char *version; /* for people; not compared. Printable ASCII, at most 128 bytes */
};

/* A language that the executor knows and cannot run here; for people, not compared. */
struct envelope_unavailable {
    char *name;
    enum language_problem problem; /* never LANGUAGE_OK */
};

struct envelope {
    char *name;
    char *version;
    struct envelope_language *languages;
    size_t language_count;
    struct envelope_unavailable *unavailable;
    size_t unavailable_count; /* at most ENVELOPE_MAX_LANGUAGES; none of them is in languages */
    bool network[NETWORK_MODE_COUNT];
    bool data_api;
    bool secrets;
    bool filesystem_read;
    bool filesystem_write;
    struct limits limits; /* value is the most that can be enforced; absent: cannot be enforced */
    json_t *isolation;    /* facts for people, not compared: an object of text or bool values */
    char sha256[DIGEST_HEX_BYTES]; /* of the canonical JSON text */
};

/* Reads an executor's answer to `capabilities` (untrusted text of at most ENVELOPE_MAX_BYTES).
 * 0 with *out owned (envelope_free); 1 with the fault set; -ENOMEM or -EIO. */
int envelope_parse(const char *text, size_t length, struct envelope *out,
                   struct fault *fault) AR_MUST_CHECK;
/* Reads it from a value, as `executors` gives it to a client. */
int envelope_from_json(const json_t *value, struct envelope *out,
                       struct fault *fault) AR_MUST_CHECK;
void envelope_free(struct envelope *envelope);

/* Everything, as it is advertised, hashed and shown; NULL when out of memory. */
json_t *envelope_to_json(const struct envelope *envelope) AR_MUST_CHECK;
/* Computes sha256 again after a change of the other fields; 0, -ENOMEM or -EIO. */
int envelope_seal(struct envelope *envelope) AR_MUST_CHECK;
bool envelope_has_language(const struct envelope *envelope, const char *language);

/* One demand that the envelope does not cover. */
struct denial {
    enum demand demand;
    json_t *requested; /* owned: mode, list, language name or number, as asked */
    json_t *offered;   /* owned: what the envelope has; null when nothing */
};

struct denials {
    struct denial items[DEMAND_COUNT];
    size_t count;
};

/* Compares everything that is asked (language and grant, before grant_fill()) with the envelope and
 * lists ALL demands that it does not cover, in the order of enum demand. Pure. Returns 0 (look at
 * denials->count) or -ENOMEM. The caller owns *denials (denials_free). */
int envelope_compare(const struct envelope *envelope, const char *language,
                     const struct grant *grant, struct denials *denials) AR_MUST_CHECK;
/* Adds a demand for a list, none of which can be had. 0 or -ENOMEM. */
int denials_add_list(struct denials *denials, enum demand demand,
                     const struct text_list *requested) AR_MUST_CHECK;
void denials_free(struct denials *denials);
/* [{"demand", "requested", "offered"}]; NULL when out of memory. */
json_t *denials_to_json(const struct denials *denials) AR_MUST_CHECK;

#endif

/*
 * json_scan.h - one linear pass over JSON bytes, ahead of jansson; for json.c alone.
 *
 * It keeps the pointer to where it is, and finds what jansson cannot name: numbers that do not fit,
 * nesting that is too deep, texts that are no UTF-8, and the bytes of the outermost "id". It does
 * not judge syntax (jansson does, afterwards): on broken input it only has to stay in bounds.
 */
#ifndef AUDITRUN_PROTOCOL_JSON_SCAN_H
#define AUDITRUN_PROTOCOL_JSON_SCAN_H

#include "protocol/json.h"

/* An object or array that is open. */
struct json_scan_level {
    bool is_object;
    bool awaits_key;
    const char *key; /* of the current member, without quotes, undecoded; NULL: none yet */
    size_t key_length;
    size_t index; /* of the current item */
};

struct json_scan {
    const char *text; /* borrowed */
    size_t length;
    size_t at;
    char *mended; /* owned; NULL, or the text with each fault overwritten by a harmless value */
    struct json_scan_level levels[JSON_MAX_DEPTH];
    size_t depth;
    struct fault fault; /* the first one */
    size_t fault_at;    /* where it begins */
    size_t outer_members;
    bool at_id; /* the value that comes, or is open, is that of the outermost "id" */
    size_t id_start, id_end;
};

/* Scans all of it. 0 or -ENOMEM; either way json_scan_free() is due. */
int json_scan_run(struct json_scan *scan, const char *text, size_t length) AR_MUST_CHECK;
void json_scan_free(struct json_scan *scan);

/* The pointer to where the scan stands. */
void json_scan_path(const struct json_scan *scan, char path[JSON_PATH_BYTES]);

#endif

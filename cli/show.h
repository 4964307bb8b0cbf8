/*
 * show.h - values in the form that a person reads: durations, sizes, times, statuses, records.
 */
#ifndef AUDITRUN_CLI_SHOW_H
#define AUDITRUN_CLI_SHOW_H

#include "cli/terminal.h"
#include "protocol/record.h"

#define SHOW_TEXT_BYTES 48

/* "850 us", "45 ms", "1.25 s", "3 min 20 s". Negative: "?". Returns out. */
const char *show_duration(int64_t us, char out[SHOW_TEXT_BYTES]);
/* "512 B", "64 KiB", "1.5 GiB". Negative: "?". Returns out. */
const char *show_bytes(int64_t bytes, char out[SHOW_TEXT_BYTES]);
/* "2026-01-31 12:00:00.123" (UTC); "-" for ROW_NULL. Returns out. */
const char *show_time(int64_t us, char out[SHOW_TEXT_BYTES]);

enum terminal_style show_status_style(enum status status);

/* A JSON value in few words: text as it is, lists and members with commas, "nothing" for null; a
 * number whose name ends in _bytes, _ms or _us with its unit. Escaped; malloc'd, NULL when out of
 * memory. */
char *show_value(const char *name, const json_t *value) AR_MUST_CHECK;

/* "label   value" lines with the values below each other. text is escaped here. */
void show_line(const struct terminal *terminal, const char *label, const char *text,
               enum terminal_style style);

/* An object as lines; objects within it with indented labels. */
void show_object(const struct terminal *terminal, const json_t *object);

/* One line for each denial of a list [{demand, requested, offered}]. */
void show_denials(const struct terminal *terminal, const json_t *denials);

/* A whole record, and whether its hash is that of its columns. 0, -ENOMEM, -EIO. */
int show_record(const struct terminal *terminal, const struct record *record) AR_MUST_CHECK;

#endif

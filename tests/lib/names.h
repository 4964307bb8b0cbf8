/*
 * names.h - a name server for tests, in the test's own event loop: what it answers to which question is
 * a script, and it remembers what it was asked.
 */
#ifndef AUDITRUN_TESTS_LIB_NAMES_H
#define AUDITRUN_TESTS_LIB_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
struct names;

/* 127.0.0.1, at a port of its own. NULL: it cannot be made. */
struct names *names_start(struct event_base *base);
void names_stop(struct names *names);
/* "127.0.0.1:PORT" */
const char *names_server(const struct names *names);

/* What is answered for a name: words, of which each question for an IPv4 address takes the next, and the
 * last one stays: "ADDRESS", "ADDRESS,ADDRESS" (of either family), "@NAME,ADDRESS" (an alias for a name that has the
 * address), "-" (no such name), "!" (the server fails), "?" (no answer at all). Names that are not set
 * do not exist. */
void names_set(struct names *names, const char *name, const char *answers);

/* Questions for IPv4 addresses of this name so far, and for those of all names. */
size_t names_asked(const struct names *names, const char *name);
size_t names_asked_all(const struct names *names);

#endif

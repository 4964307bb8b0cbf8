/*
 * languages.h - how an executor runs a language: the files in languages.d.
 *
 * Which languages there are, and by which commands, is the executor's own business; the daemon only
 * sees their names and versions in the envelope. No shell reads the commands: they are split into
 * words here. In words and in values of variables, {file} and {program} stand for absolute paths
 * inside the sandbox, and {memory_mb} for the memory that the run is granted.
 */
#ifndef AUDITRUN_EXECUTORS_COMMON_LANGUAGES_H
#define AUDITRUN_EXECUTORS_COMMON_LANGUAGES_H

#include "protocol/envelope.h"
#include "protocol/spec.h"

struct language {
    char *name;
    char *file;               /* the name that the code gets, one path component */
    struct text_list compile; /* words; empty: the language has no such step */
    struct text_list run;     /* words; args of the request come behind them */
    char *sample;             /* code that prints its version and exits 0, when all is well */
    struct text_list env;     /* NAME=VALUE: what its compiler and its runtime need */
    struct text_list etc;     /* patterns of names in the host's /etc that they read */
};

/* What the placeholders of one run stand for. */
struct languages_places {
    const char *file;    /* absolute, inside the sandbox */
    const char *program; /* likewise: what the compiler makes */
    int64_t memory_mb;   /* languages_memory_mb() */
};

struct languages {
    struct language *items;
    size_t count; /* at most ENVELOPE_MAX_LANGUAGES */
};

/* What is wrong with the configuration, for the operator. */
struct languages_fault {
    char file[256];
    int line; /* 0: the file as a whole */
    const char *problem;
};

/* Reads all *.conf of a directory, in the order of their names. 0 with *out owned
 * (languages_free()); 1 with *fault set; -ENOMEM; -errno when the directory cannot be read. */
int languages_read(const char *directory, struct languages *out,
                   struct languages_fault *fault) AR_MUST_CHECK;
void languages_free(struct languages *languages);

/* NULL when it is not configured. */
const struct language *languages_find(const struct languages *languages, const char *name);

/* Splits a command: words are parted by blanks; '...' is literal, "..." may hold \" and \\, and a
 * backslash elsewhere takes the next byte as it is. 0 with *words owned; 1 when a quote does not
 * close; -ENOMEM. */
int languages_split(const char *command, struct text_list *words) AR_MUST_CHECK;

/* The memory of a run in MiB, rounded down, at least 1: memory_bytes of its limits, or without that
 * limit what the machine has. */
int64_t languages_memory_mb(const struct limits *limits);

/* The command as an argument vector, ended by NULL: placeholders are replaced in words, never in args
 * (may be NULL), which come behind. The vector is owned: languages_free_vector(). NULL: out of
 * memory. */
char **languages_command(const struct text_list *words, const struct languages_places *places,
                         const struct text_list *args) AR_MUST_CHECK;
/* An environment, ended by NULL: base (NAME=VALUE, ended by NULL), over it the language's own
 * variables with their placeholders replaced, over both those of the request (spec; NULL for a
 * compiler). A name is there once. Owned and freed like a command; NULL: out of memory. */
char **languages_environment(const struct language *language, const struct languages_places *places,
                             const char *const *base, const struct spec *spec) AR_MUST_CHECK;
void languages_free_vector(char **vector);

/* The names in the host's /etc that any of the languages reads: what its patterns match there now,
 * each once, in no order. 0 with *names owned; -ENOMEM; -errno when /etc cannot be read. */
int languages_etc(const struct languages *languages, struct text_list *names) AR_MUST_CHECK;

#endif

/*
 * languages.h - how an executor runs a language: the files in languages.d.
 *
 * Which languages there are, and by which commands, is the executor's own business; the daemon only
 * sees their names and versions in the envelope. No shell reads the commands: they are split into
 * words here, and {file} and {program} stand for absolute paths inside the sandbox.
 */
#ifndef AUDITRUN_EXECUTORS_COMMON_LANGUAGES_H
#define AUDITRUN_EXECUTORS_COMMON_LANGUAGES_H

#include "protocol/envelope.h"

struct language {
    char *name;
    char *file;               /* the name that the code gets, one path component */
    struct text_list compile; /* words; empty: the language has no such step */
    struct text_list run;     /* words; args of the request come behind them */
    char *sample;             /* code that prints its version and exits 0, when all is well */
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

/* The command as an argument vector, ended by NULL: {file} and {program} are replaced in words, args
 * (may be NULL) come behind. The vector is owned: languages_free_vector(). NULL: out of memory. */
char **languages_vector(const struct text_list *words, const char *file, const char *program,
                        const struct text_list *args) AR_MUST_CHECK;
void languages_free_vector(char **vector);

#endif

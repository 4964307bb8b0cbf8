/*
 * postgres_problem.c - see postgres_problem.h.
 *
 * An error of the server is told by its SQLSTATE. What libpq itself finds has none: there the words
 * of its message decide, and where none is known, how far the connection had come.
 */
#include "sinks/postgres_problem.h"

#include <ctype.h>
#include <string.h>

#define STATE_LENGTH 5

static const char *const words[POSTGRES_PROBLEMS] = {
    [POSTGRES_FINE] = "fine",
    [POSTGRES_READ_ONLY] = "read_only",
    [POSTGRES_UNKNOWN_NAME] = "unknown_name",
    [POSTGRES_UNREACHABLE] = "unreachable",
    [POSTGRES_TIMED_OUT] = "timed_out",
    [POSTGRES_LOST] = "lost",
    [POSTGRES_UNAVAILABLE] = "unavailable",
    [POSTGRES_TOO_MANY] = "too_many_connections",
    [POSTGRES_REFUSED] = "refused",
    [POSTGRES_FULL] = "full",
    [POSTGRES_SCHEMA] = "schema",
    [POSTGRES_PRIVILEGE] = "privilege",
    [POSTGRES_NO_DATABASE] = "no_database",
    [POSTGRES_NO_PASSWORD] = "no_password",
    [POSTGRES_AUTHENTICATION] = "authentication",
    [POSTGRES_TLS] = "tls",
    [POSTGRES_TLS_FILE] = "tls_file",
    [POSTGRES_SETTINGS] = "settings",
};

/* The first that fits; a class is the beginning of a state. */
static const struct {
    const char *state;
    enum postgres_problem problem;
} states[] = {
    {"08", POSTGRES_LOST},           {"25006", POSTGRES_READ_ONLY},
    {"28", POSTGRES_AUTHENTICATION}, {"3D", POSTGRES_NO_DATABASE},
    {"3F", POSTGRES_SCHEMA},         {"42501", POSTGRES_PRIVILEGE},
    {"42", POSTGRES_SCHEMA},         {"53100", POSTGRES_FULL},
    {"53300", POSTGRES_TOO_MANY},    {"57P01", POSTGRES_UNAVAILABLE},
    {"57P02", POSTGRES_UNAVAILABLE}, {"57P03", POSTGRES_UNAVAILABLE},
    {"57P04", POSTGRES_NO_DATABASE}, {"57P05", POSTGRES_LOST},
};

/* The first that is found in the message. */
static const struct {
    const char *words;
    enum postgres_problem problem;
} phrases[] = {
    {"certificate file", POSTGRES_TLS_FILE},
    {"private key file", POSTGRES_TLS_FILE},
    {"session is read-only", POSTGRES_READ_ONLY},
    {"hot standby mode", POSTGRES_READ_ONLY},
    {"no password supplied", POSTGRES_NO_PASSWORD},
    {"SSL", POSTGRES_TLS},
    {"certificate", POSTGRES_TLS},
    {"could not translate host name", POSTGRES_UNKNOWN_NAME},
    {"could not match", POSTGRES_SETTINGS},
    {"invalid ", POSTGRES_SETTINGS},
    {"missing \"=\"", POSTGRES_SETTINGS},
    {"service", POSTGRES_SETTINGS},
    {"password", POSTGRES_AUTHENTICATION},
    {"authentication", POSTGRES_AUTHENTICATION},
    {"SCRAM", POSTGRES_AUTHENTICATION},
    {"channel binding", POSTGRES_AUTHENTICATION},
    {"closed the connection", POSTGRES_LOST},
};

const char *postgres_problem_word(enum postgres_problem problem)
{
    return words[problem];
}

enum postgres_problem postgres_problem_of_state(const char *state)
{
    for (size_t i = 0; state && i < AR_COUNT(states); i++)
        if (strncmp(state, states[i].state, strlen(states[i].state)) == 0)
            return states[i].problem;
    return POSTGRES_REFUSED;
}

/* "SEVERITY:  STATE" and the end of the line, which is all that is said of a server's error. */
static const char *find_state(const char *message)
{
    for (const char *at = strstr(message, ":  "); at; at = strstr(at + 1, ":  ")) {
        const char *state = at + strlen(":  ");
        size_t length = 0;
        while (isupper((unsigned char)state[length]) || isdigit((unsigned char)state[length]))
            length++;
        if (length == STATE_LENGTH && (state[length] == '\n' || state[length] == '\0'))
            return state;
    }
    return NULL;
}

static enum postgres_problem by_status(ConnStatusType last)
{
    switch (last) {
    case CONNECTION_SSL_STARTUP:
        return POSTGRES_TLS;
    case CONNECTION_AWAITING_RESPONSE:
    case CONNECTION_AUTH_OK:
        return POSTGRES_LOST;
    default:
        return POSTGRES_UNREACHABLE;
    }
}

enum postgres_problem postgres_problem_of_message(const char *message, ConnStatusType last)
{
    /* What stands before is a prefix with the host's name. */
    const char *said = strstr(message, " failed: ");
    said = said ? said : message;
    const char *state = find_state(said);
    if (state)
        return postgres_problem_of_state(state);
    for (size_t i = 0; i < AR_COUNT(phrases); i++)
        if (strstr(said, phrases[i].words))
            return phrases[i].problem;
    return by_status(last);
}

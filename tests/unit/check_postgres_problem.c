/*
 * check_postgres_problem.c - one word for each way in which a server does not serve.
 */
#include "sinks/postgres_problem.h"
#include "tests/unit/unit.h"

START_TEST(test_words)
{
    for (int i = 0; i < POSTGRES_PROBLEMS; i++) {
        const char *word = postgres_problem_word((enum postgres_problem)i);
        ck_assert_ptr_nonnull(word);
        ck_assert_uint_eq(strspn(word, "abcdefghijklmnopqrstuvwxyz_"), strlen(word));
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(word, postgres_problem_word((enum postgres_problem)j));
    }
}
END_TEST

START_TEST(test_states)
{
    static const struct {
        const char *state;
        enum postgres_problem problem;
    } states[] = {
        {"25006", POSTGRES_READ_ONLY},
        {"28P01", POSTGRES_AUTHENTICATION},
        {"28000", POSTGRES_AUTHENTICATION},
        {"3D000", POSTGRES_NO_DATABASE},
        {"42501", POSTGRES_PRIVILEGE},
        {"42P01", POSTGRES_SCHEMA},
        {"53100", POSTGRES_FULL},
        {"53300", POSTGRES_TOO_MANY},
        {"57P01", POSTGRES_UNAVAILABLE},
        {"57014", POSTGRES_REFUSED},
        {"", POSTGRES_REFUSED},
        {NULL, POSTGRES_REFUSED},
    };
    for (size_t i = 0; i < AR_COUNT(states); i++)
        ck_assert_int_eq(postgres_problem_of_state(states[i].state), states[i].problem);
}
END_TEST

#define AT "connection to server at \"SSL.password\" (192.0.2.7), port 5432 failed: "

START_TEST(test_messages)
{
    static const struct {
        const char *message;
        ConnStatusType last;
        enum postgres_problem problem;
    } messages[] = {
        {AT "FATAL:  28P01\n", CONNECTION_AUTH_OK, POSTGRES_AUTHENTICATION},
        {AT "FATAL:  57P03\n", CONNECTION_AUTH_OK, POSTGRES_UNAVAILABLE},
        {AT "FATALE:  3D000", CONNECTION_AUTH_OK, POSTGRES_NO_DATABASE},
        {AT "Connection refused\n\tIs the server running on that host?\n", CONNECTION_STARTED,
         POSTGRES_UNREACHABLE},
        {AT "something new\n", CONNECTION_SSL_STARTUP, POSTGRES_TLS},
        {AT "something new\n", CONNECTION_AWAITING_RESPONSE, POSTGRES_LOST},
        {AT "session is read-only\n", CONNECTION_AUTH_OK, POSTGRES_READ_ONLY},
        {AT "root certificate file \"/x\" does not exist\n", CONNECTION_SSL_STARTUP,
         POSTGRES_TLS_FILE},
        {AT "SSL error: certificate verify failed\n", CONNECTION_SSL_STARTUP, POSTGRES_TLS},
        {AT "fe_sendauth: no password supplied\n", CONNECTION_AWAITING_RESPONSE,
         POSTGRES_NO_PASSWORD},
        {"invalid sslmode value: \"x\"\n", CONNECTION_NEEDED, POSTGRES_SETTINGS},
        {"", CONNECTION_NEEDED, POSTGRES_UNREACHABLE},
    };
    for (size_t i = 0; i < AR_COUNT(messages); i++)
        ck_assert_str_eq(postgres_problem_word(
                             postgres_problem_of_message(messages[i].message, messages[i].last)),
                         postgres_problem_word(messages[i].problem));
}
END_TEST

static const TTest **const tests[] = {&test_words, &test_states, &test_messages, NULL};

int main(void)
{
    static const struct unit_case cases[] = {{"postgres_problem", tests}};
    return unit_main("postgres_problem", cases, AR_COUNT(cases));
}

/*
 * verb.c - from a command line to a verb's options, and to its deed.
 */
#include "cli/verb.h"

#include "cli/exit_code.h"
#include "cli/message.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* What was printed is in the hands of the system, or the exit code says that it is not. */
static int flush(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    return message_error(EXIT_CODE_OUTPUT, "cannot write to standard output");
}

static int act(const struct verb *verb, const char *title, void *options,
               const struct options_rest *rest)
{
    if (!verb->takes_operands && rest->operands.count + rest->behind.count > 0)
        return message_usage(title, "nothing stands behind the options");
    return flush(verb->act(title, options, rest));
}

int verb_call(const struct verb *verb, int argc, char **argv)
{
    struct options_rest rest = {0};
    int code = EXIT_CODE_USAGE;
    AR_AUTO_FREE void *options = malloc(verb->options_size);
    if (!options)
        return message_failure(-ENOMEM, "cannot read the command line");
    memcpy(options, verb->defaults, verb->options_size);
    int rc = options_parse(argc, argv, verb->rows, verb->row_count, options, now_us(), &rest);
    if (rc < 0)
        code = message_failure(rc, "cannot read the command line");
    else if (rc == OPTIONS_HELP)
        code = flush(fputs(verb->help, stdout) < 0 ? EXIT_CODE_OUTPUT : EXIT_CODE_OK);
    else if (rc == OPTIONS_OK)
        code = act(verb, argv[0], options, &rest);
    options_free(verb->rows, verb->row_count, options);
    options_rest_free(&rest);
    return code;
}

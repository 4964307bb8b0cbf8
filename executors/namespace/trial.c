/*
 * trial.c - runs attacks, with what a grant can give.
 *
 * The order is made in the first process of the sandbox, as that of a run is, and by the same functions;
 * only its descriptors do not come from a daemon.
 */
#include "executors/namespace/trial.h"

#include "executors/namespace/attack.h"
#include "executors/namespace/sandbox.h"
#include "protocol/secret_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define NAME "namespace"

/* ---- what it is given ------------------------------------------------------------------------- */

static bool add(struct text_list *list, const char *text)
{
    return text_list_add(list, text) == 0;
}

static bool fill_grant(const struct trial *trial, struct grant *grant)
{
    grant->network = trial->slot->reach & REACH_NETWORK ? NETWORK_OPEN : NETWORK_NONE;
    if (trial->limit != LIMIT_COUNT) {
        grant->limits.has[trial->limit] = true;
        grant->limits.value[trial->limit] = trial->amount;
    }
    if (trial->given & ATTACK_PORT && !add(&grant->data_api, "probe.*"))
        return false;
    if (trial->given & ATTACK_SECRETS &&
        (!add(&grant->secrets, ATTACK_SECRET) || !add(&grant->secrets_env, ATTACK_SECRET)))
        return false;
    return !(trial->slot->reach & REACH_FILES) ||
           (add(&grant->read, ATTACK_READ) && add(&grant->write, ATTACK_WRITE));
}

/* The other end goes with the first process. */
static int make_port(struct order *order)
{
    const char byte = ATTACK_BYTE;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
        write(pair[0], &byte, 1) != 1)
        return -errno;
    order->data_port = pair[1];
    return 0;
}

static int give(const struct trial *trial, struct order *order)
{
    const int null = trial->slot->null;
    const int streams[] = {null, null, null, -1};
    memcpy(order->streams, streams, sizeof(streams));
    if (trial->given & ATTACK_SECRETS)
        order->secrets = trial->secrets;
    if (trial->slot->reach & REACH_FILES) {
        memcpy(order->trees, trial->trees, 2 * sizeof(int));
        order->tree_count = 2;
    }
    return trial->given & ATTACK_PORT ? make_port(order) : 0;
}

int trial_secrets(void)
{
    char head[SECRET_HEAD_BYTES];
    AR_AUTO_CLOSE int fd = memfd_create("secrets", MFD_CLOEXEC);
    secret_file_head(ATTACK_SECRET, strlen(ATTACK_VALUE), head);
    if (fd < 0 || dprintf(fd, "%s%s", head, ATTACK_VALUE) < 0)
        return -errno;
    return base_take_fd(&fd);
}

bool trial_is_wiped(int secrets)
{
    char text[256];
    ssize_t length = pread(secrets, text, sizeof(text), 0);
    for (ssize_t i = 0; i < length; i++)
        if (text[i] != '\0')
            return false;
    return length >= 0;
}

/* ---- the run ---------------------------------------------------------------------------------- */

/* An argument vector on the heap, as an order owns it. */
static char **make_words(const char *const *words, size_t count)
{
    char **vector = calloc(count + 1, sizeof(*vector));
    for (size_t i = 0; vector && i < count; i++)
        if (!(vector[i] = strdup(words[i]))) {
            languages_free_vector(vector);
            return NULL;
        }
    return vector;
}

/* In the first process of the sandbox. */
static int take(void *context, struct order *order, struct failure *failure)
{
    const struct trial *trial = context;
    char amount[24];
    const char *const words[] = {NAME, "attack", trial->attack, amount};

    (void)snprintf(amount, sizeof(amount), "%ld", trial->amount);
    struct spec *spec = calloc(1, sizeof(*spec));
    char **vector = make_words(words, AR_COUNT(words));
    if (!spec || !vector || !fill_grant(trial, &spec->grant)) {
        spec_free(spec);
        languages_free_vector(vector);
        return step_fail(failure, STEP_SPEC, ENOMEM);
    }
    int result = give(trial, order);
    if (result < 0) {
        spec_free(spec);
        languages_free_vector(vector);
        return step_fail(failure, STEP_DESCRIPTORS, -result);
    }
    return order_make_own(order, trial->slot, trial->program, vector, spec, failure);
}

/* Nobody serves it: the first process keeps it, so that connections are made. */
static int keep(void *context, int listener)
{
    (void)context;
    return fcntl(listener, F_DUPFD_CLOEXEC, 0) < 0 ? -errno : 0;
}

int trial_run(struct trial *trial, int64_t wait_ms, struct report *report, struct failure *failure)
{
    const struct inside_source source = {.take = take, .listening = keep, .context = trial};
    return sandbox_try(trial->slot, &source, wait_ms, report, failure);
}

const char *trial_walls(struct trial *trial, int64_t wait_ms, struct failure *failure)
{
    struct report report = {0};
    *failure = (struct failure){0};
    trial->attack = "walls";
    trial->limit = LIMIT_COUNT;
    trial->amount = trial->given | trial->slot->reach;
    int result = trial_run(trial, wait_ms, &report, failure);
    if (result < 0)
        return step_word(failure->step);
    if (result == 0 && report.outcome == OUTCOME_EXITED && report.exit_code == 0)
        return NULL;
    return attack_word(report.exit_code);
}

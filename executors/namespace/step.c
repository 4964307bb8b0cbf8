/*
 * step.c - the words for what can fail, and the one line in which a failure is told.
 */
#include "executors/namespace/step.h"

#include <stdio.h>
#include <string.h>

static const char *const words[STEP_COUNT] = {
    [STEP_NONE] = "",
    [STEP_MEMORY] = "the memory of the slot",
    [STEP_ID_SPACE] = "the id of the slot (do /etc/subuid and /etc/subgid give one for each slot?)",
    [STEP_USER_NAMESPACE] = "the user namespace (are unprivileged user namespaces allowed here?)",
    [STEP_ID_MAP] = "the map of user and group ids",
    [STEP_IDS] = "the user and group id of the sandbox",
    [STEP_OTHER_NAMESPACES] = "the mount and uts namespaces",
    [STEP_TEMPLATE] = "the template of the root file system",
    [STEP_HOST_PIECES] = "the read-only pieces of the host",
    [STEP_DEVICES] = "the devices of the sandbox",
    [STEP_ETC] = "the /etc of the sandbox",
    [STEP_SLOT_ROOT] = "the root of the slot",
    [STEP_PRIVILEGES] = "the privileges of the slot",
    [STEP_FILTER] = "the filter of system calls",
    [STEP_SPEC] = "the run: its spec cannot be read",
    [STEP_LANGUAGE] = "the run: its language is not configured",
    [STEP_GRANT] = "the run: it is granted what this executor does not offer",
    [STEP_VARIABLE] = "the run: a secret that has a NUL byte in it cannot be a variable",
    [STEP_CLONE] = "the namespaces of a sandbox",
    [STEP_GUARD] = "the guard against the loss of the launcher",
    [STEP_DESCRIPTORS] = "the descriptors of a sandbox",
    [STEP_SCRATCH] = "the scratch file system",
    [STEP_FILES] = "the files of the run",
    [STEP_SECRETS] = "the secrets of the run",
    [STEP_PATHS] = "the host paths of the run",
    [STEP_PLACES] = "the host paths of the run: one of them is where the sandbox has its own",
    [STEP_NETWORK] = "the network of the run",
    [STEP_ROOT] = "the root of a sandbox",
    [STEP_PROC] = "the /proc of a sandbox (is a part of the host's /proc covered?)",
    [STEP_LANDLOCK] = "the rules of Landlock",
    [STEP_SPAWN] = "the process of the code",
    [STEP_LIMITS] = "the limits of the code",
    [STEP_CAPABILITIES] = "the code's lack of capabilities",
    [STEP_EXEC] = "the program of the language",
    [STEP_OUTPUTS] = "the output files",
    [STEP_SOCKETS] = "the end of the run's sockets",
    [STEP_LOST] = "the run: its first process was lost",
};

const char *step_word(enum step step)
{
    return step < STEP_COUNT ? words[step] : "";
}

int step_fail(struct failure *failure, enum step step, int error)
{
    *failure = (struct failure){.step = step, .error = error};
    return error > 0 ? -error : -EIO;
}

void step_tell(const struct failure *failure)
{
    if (failure->error > 0)
        (void)fprintf(stderr, "auditrun-executor-namespace: cannot set up %s: %s\n",
                      step_word(failure->step), strerror(failure->error));
    else
        (void)fprintf(stderr, "auditrun-executor-namespace: cannot set up %s\n",
                      step_word(failure->step));
}

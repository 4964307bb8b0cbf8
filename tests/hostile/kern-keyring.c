/*
 * Hostile probe kern-keyring (kernel).
 * Uses the kernel's keyrings, which are kept by user and not by namespace.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <sys/syscall.h>

static long add(int ring)
{
    long key = syscall(SYS_add_key, "user", "hostile-key", "x", 1UL, ring);
    if (key >= 0)
        syscall(SYS_keyctl, 15 /* set timeout */, key, 3);
    return key;
}
static long add_process(void)
{
    return add(-2);
}
static long add_session(void)
{
    syscall(SYS_keyctl, 1 /* join a session keyring of its own */, NULL);
    return add(-3);
}
static long add_user(void)
{
    return add(-4);
}
static long join(void)
{
    return syscall(SYS_keyctl, 1, NULL);
}
static long user_ring(void)
{
    return syscall(SYS_keyctl, 0 /* get id */, -4, 0);
}
static long persistent(void)
{
    return syscall(SYS_keyctl, 22, -1, -2);
}
static long request(void)
{
    return syscall(SYS_request_key, "user", "hostile-key", NULL, 0);
}

int main(void)
{
    say("START", "kern-keyring");
    try_one("add a key to the process keyring", add_process, 0);
    try_one("add a key to the session keyring", add_session, 0);
    try_one("add a key to the user's keyring", add_user, 0);
    try_one("join a session keyring", join, 0);
    try_one("look at the user's keyring", user_ring, 1);
    try_one("persistent keyring", persistent, 1);
    try_one("ask for a key", request, 1);
    return 0;
}

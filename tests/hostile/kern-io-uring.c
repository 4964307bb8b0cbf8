/*
 * Hostile probe kern-io-uring (kernel).
 * Sets up an io_uring, whose operations no filter of calls sees.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <sys/syscall.h>

static long setup(void)
{
    unsigned params[30] = {0};
    return syscall(425, 4, params);
}
static long enter(void)
{
    return syscall(426, -1, 0, 0, 0, NULL, 0);
}
static long reg(void)
{
    return syscall(427, -1, 0, NULL, 0);
}
static long aio(void)
{
    unsigned long ctx = 0;
    return syscall(SYS_io_setup, 1, &ctx);
}

int main(void)
{
    say("START", "kern-io-uring");
    try_one("io_uring_setup", setup, 1);
    try_one("io_uring_enter", enter, 1);
    try_one("io_uring_register", reg, 1);
    long r = aio();
    say("INFO", "old io_setup: %s", r < 0 ? strerror(errno) : "allowed");
    return 0;
}

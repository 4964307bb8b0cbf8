/*
 * Hostile probe kern-module-kexec (kernel).
 * Asks for kernel modules and another kernel, with arguments that cannot work.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* Each with arguments that cannot work, so that only the permission is asked for. */
static long init_mod(void)
{
    return syscall(SYS_init_module, NULL, 0UL, "");
}
static long finit(void)
{
    return syscall(SYS_finit_module, -1, "", 0);
}
static long del(void)
{
    return syscall(SYS_delete_module, "hostile_no_such_module", O_NONBLOCK);
}
static long kexec(void)
{
    return syscall(SYS_kexec_load, 0UL, 0UL, NULL, ~0UL);
}
static long kexec_file(void)
{
    return syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, ~0UL);
}

int main(void)
{
    say("START", "kern-module-kexec");
    try_one("init_module", init_mod, 1);
    try_one("finit_module", finit, 1);
    try_one("delete_module", del, 1);
    try_one("kexec_load", kexec, 1);
    try_one("kexec_file_load", kexec_file, 1);
    return 0;
}

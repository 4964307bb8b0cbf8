/*
 * Hostile probe kern-tiocsti (kernel).
 * Types into the terminal that its caller sits at. The test gives it one.
 * Prints ESCAPED for each thing that got through, CONTAINED for what did not.
 */
#include "probe.h"

#include <fcntl.h>
#include <sys/ioctl.h>

static int fd;
static long type_in(void)
{
    return ioctl(fd, TIOCSTI, "#");
}
static long paste(void)
{
    char sub = 3; /* what is selected on the console, put in as if typed */
    return ioctl(fd, TIOCLINUX, &sub);
}

int main(void)
{
    say("START", "kern-tiocsti");
    for (fd = 0; fd < 3; fd++) {
        char what[64];
        snprintf(what, sizeof what, "type into the terminal of fd %d", fd);
        try_one(what, type_in, 0);
    }
    fd = open("/dev/tty", O_RDWR | O_NONBLOCK);
    if (fd < 0) {
        say("CONTAINED", "no controlling terminal (%s)", strerror(errno));
        return 0;
    }
    try_one("type into the controlling terminal", type_in, 0);
    try_one("paste into the controlling terminal", paste, 0);
    return 0;
}

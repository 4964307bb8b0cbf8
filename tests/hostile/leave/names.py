# The names of the host and of its domain, its clock, and settings of its kernel.
def leave():
    made = libc.sethostname(b"left", 4) == 0
    made += libc.setdomainname(b"left", 4) == 0
    for path in ("/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/kernel/shmmax", "/proc/sys/kernel/ns_last_pid"):
        try:
            with open(path, "w") as file:
                file.write("1")
            made += 1
        except OSError:
            pass
    if not made:
        checked(-1)


def look():
    return [os.uname().nodename, os.uname().release, word(lambda: open("/proc/sys/kernel/domainname").read()),
            word(lambda: open("/proc/sys/kernel/shmmax").read())]

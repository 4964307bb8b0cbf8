# Hostile probe fs-raw-devices (filesystem).
# Opens disks, memory and other devices, makes nodes of its own for them, and looks at the
# memory of the kernel.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import os
import re
import stat

from probe import say, to_scratch

say("START", "fs-raw-devices")
HARMLESS = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}
# Only these are opened: the opening alone of a watchdog or a tape does something.
WORTH = re.compile(r"(sd|hd|vd|xvd|nvme|loop|dm-|sr|md|z?ram|vhost|vsock|kvm|fuse|mem$|kmem|port|kmsg|tun$|tap|vfio|dri|card|render"
                   r"|nvidia|event|uinput|uhid|msr|cpuid|hpet|nvram|fb|vcs|tty\d|video|mapper|btrfs-control|userfaultfd|snd)")
tries = 0
for top, dirs, files in os.walk("/dev"):
    dirs[:] = [d for d in dirs if d not in ("shm", "mqueue", "hugepages", "fd")]
    for name in files:
        path = os.path.join(top, name)
        try:
            kind = os.lstat(path).st_mode
        except OSError:
            continue
        if not (stat.S_ISBLK(kind) or stat.S_ISCHR(kind)):
            continue
        if name in HARMLESS or top == "/dev/pts":
            continue
        tries += 1
        if not WORTH.match(name):
            say("INFO", f"{path} is there")
            continue
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
            say("ESCAPED", f"can open {path}")
        except OSError:
            pass
to_scratch()
nodes = (("disk", stat.S_IFBLK, 8, 0), ("virtual disk", stat.S_IFBLK, 254, 0), ("loop", stat.S_IFBLK, 7, 0),
         ("mem", stat.S_IFCHR, 1, 1), ("port", stat.S_IFCHR, 1, 4), ("kmsg", stat.S_IFCHR, 1, 11),
         ("fuse", stat.S_IFCHR, 10, 229), ("tun", stat.S_IFCHR, 10, 200), ("kvm", stat.S_IFCHR, 10, 232))
for name, kind, major, minor in nodes:
    tries += 1
    try:
        os.mknod("hostile-node", kind | 0o600, os.makedev(major, minor))
    except OSError:
        continue
    say("INFO", f"made a node for {name}")
    try:
        os.close(os.open("hostile-node", os.O_RDONLY | os.O_NONBLOCK))
        say("ESCAPED", f"made and opened a node for {name}")
    except OSError:
        pass
    os.unlink("hostile-node")
for path in ("/proc/kcore", "/proc/vmcore", "/dev/mem", "/dev/port", "/boot/System.map"):
    tries += 1
    try:
        with open(path, "rb", buffering=0) as f:
            if f.read(16):
                say("ESCAPED", f"can read {path}")
    except OSError:
        pass
try:
    with open("/proc/kallsyms") as f:
        line = f.readline().split()
        if line and int(line[0], 16):
            say("ESCAPED", "/proc/kallsyms shows kernel addresses")
except (OSError, ValueError):
    pass
say("CONTAINED", f"the rest of {tries} devices")

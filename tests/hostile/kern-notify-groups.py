# Hostile probe kern-notify-groups (kernel).
# Watches whole mounts with fanotify, and uses up inotify instances, which count for the user
# of the host.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import ctypes
import os

from probe import say

say("START", "kern-notify-groups")
libc = ctypes.CDLL(None, use_errno=True)
# Watches on whole mounts or with a say in each access; then the weak kind that anybody may have.
for name, flags in (("content", 4), ("pre-content", 8), ("notification", 0), ("by file handle", 0x200)):
    fd = libc.fanotify_init(flags, os.O_RDONLY)
    if fd < 0:
        say("CONTAINED", f"fanotify {name}: {os.strerror(ctypes.get_errno())}")
        continue
    got = False
    for mark in (0x10 | 1, 0x100 | 1):
        if libc.fanotify_mark(fd, mark, ctypes.c_ulonglong(0x20), -100, b"/usr") == 0:
            got = True
    say("ESCAPED" if got or name != "by file handle" else "INFO", f"fanotify {name}: opened{', whole mount watched' if got else ''}")
    os.close(fd)
# Instances and watches count for the user of the host, so they must not be the daemon's own.
keep = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        n = 0
        while n < 60 and libc.inotify_init() >= 0:
            n += 1
        os._exit(n)
    n = os.WEXITSTATUS(os.waitpid(pid, 0)[1])
    keep.append(n)
say("CONTAINED", f"at most {max(keep)} inotify instances in one process")

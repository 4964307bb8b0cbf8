# Hostile probe fs-scratch-links (filesystem).
# Leaves symbolic links out of the scratch directory, loops, FIFOs, sockets, a file of 1 TiB
# without content, unreadable entries and names with line ends, escapes and invalid text, for
# whatever collects or clears it; tries hard links to files of the host.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import os
import socket

from probe import say, to_scratch

say("START", "fs-scratch-links")
to_scratch()
made = 0


def make(what, act):
    global made
    try:
        act()
        made += 1
    except (OSError, ValueError) as error:
        say("INFO", f"{what}: {error}")


for i, target in enumerate(("/etc/shadow", "/etc/passwd", "/", "..", "../../../../../../../../etc", "/proc/self/fd/0",
                            "/proc/1/root", "/dev/zero", "/dev/stdin", "hostile-link-loop", "x" * 4000, "no-such")):
    make(f"symlink to {target[:40]}", lambda: os.symlink(target, f"hostile-link-{i}"))
make("loop", lambda: os.symlink("hostile-link-loop", "hostile-link-loop"))
make("fifo", lambda: os.mkfifo("hostile-fifo"))
make("fifo named like an output", lambda: os.mkfifo("stdout"))
make("socket", lambda: socket.socket(socket.AF_UNIX).bind("hostile-socket"))
make("huge sparse file", lambda: os.truncate(os.open("hostile-sparse", os.O_CREAT | os.O_RDWR), 1 << 40))
for name in (b"-rf", b"--", b"new\nline", b"\x1b[31mred", b"\xff\xfe not text", b"n" * 247, b" ", b"a;reboot",
             b"$(id)", b"`id`", b"'\"", b"..\\..", b"...", b"con.txt:stream", "e\u0301 \u202e.exe".encode()):
    make(f"name {name[:20]!r}", lambda: os.close(os.open(b"hostile-" + name if name[:1] != b"-" else name,
                                                         os.O_CREAT | os.O_WRONLY, 0o600)))
make("directory that cannot be read", lambda: os.mkdir("hostile-shut", 0))
make("file that cannot be read", lambda: os.close(os.open("hostile-blind", os.O_CREAT | os.O_WRONLY, 0)))
for path in ("/etc/passwd", "/usr/bin/env", "/bin/sh", "/proc/self/exe", "/etc/ld.so.cache"):
    try:
        os.link(path, "hostile-hard", follow_symlinks=True)
        os.unlink("hostile-hard")
        say("ESCAPED", f"made a hard link to {path} in the scratch directory")
    except OSError:
        pass
say("CONTAINED", f"{made} strange entries left in the scratch directory; no hard link out of it")

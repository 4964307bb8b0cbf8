# Hostile probe mem-shm-fill (memory).
# Fills every file system in memory that it may write to, /dev/shm first, up to 320 MiB.
# Contained when it is refused more, or is ended, before it gets there.
import os

from probe import say

CEILING, ALLOWED = 320, 128 + 16
say("START", "mem-shm-fill")
block = b"\1" * (1 << 20)
total, files = 0, []
for place in ("/dev/shm", "/dev", "/run", "/run/lock", "/var/tmp", "/var", "/tmp", "/"):
    path = os.path.join(place, f"hostile-left-{os.getpid()}")
    try:
        fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    except OSError:
        continue
    files.append(path)
    here = 0
    try:
        while total < CEILING:
            here += os.write(fd, block) >> 20
            total = total + 1
    except OSError as error:
        say("INFO", f"{place}: {here} MiB, then {error.strerror}")
    os.close(fd)
for path in files:
    try:
        os.unlink(path)
    except OSError:
        pass
if total >= CEILING:
    say("ESCAPED", f"{total} MiB in memory file systems, {ALLOWED} granted with the scratch directory")
else:
    say("CONTAINED", f"{total} MiB in {len(files)} places")

# Hostile probe fs-fill-bytes (filesystem).
# Fills the scratch directory with several files up to 64 MiB; 16 MiB are granted.
# Contained when it is refused more, or is ended, before it gets there.
import os

from probe import say, to_scratch

CEILING, ALLOWED = 64, 16
say("START", "fs-fill-bytes")
to_scratch()
block = b"\1" * (1 << 20)
total, why = 0, ""
# Several files, so that a limit on the size of one alone is not enough.
for i in range(CEILING // 8):
    try:
        fd = os.open(f"hostile-fill-{i}", os.O_CREAT | os.O_WRONLY, 0o600)
        for _ in range(8):
            if os.write(fd, block) < len(block):
                raise OSError(28, "short write")
            total += 1
        os.close(fd)
    except OSError as error:
        why = error.strerror
        break
if total >= CEILING:
    say("ESCAPED", f"{total} MiB in the scratch directory, {ALLOWED} granted")
else:
    say("CONTAINED", f"{total} MiB ({why})")

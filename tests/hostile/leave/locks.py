# Locks and leases on files that every run sees, also in nobody's hands.
PLACES = ["/", "/etc", "/etc/passwd", "/etc/ld.so.cache", "/usr", "/usr/bin/env", "/dev/null", "/dev/full"]


def leave():
    made = []
    for place in PLACES:
        try:
            fd = os.open(place, os.O_RDONLY)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            word(lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK))
            made.append(fd)
        except OSError:
            pass
    keep_in_flight(made)
    if not made:
        raise OSError(errno.EACCES, "")


def look():
    seen = []
    for place in PLACES:
        fd = os.open(place, os.O_RDONLY)
        seen.append(f"{place} {word(lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB))}")
    return seen

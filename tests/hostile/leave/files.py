# Files, folders and links with odd names and without rights, in every place that may be writable.
PLACES = ["/work", "/tmp", "/dev/shm", "/code", "/var/tmp", "/dev", "/", "/etc", "/usr", "/usr/lib", "/proc",
          "/dev/mqueue", "/run", "/home", "/var"]
NAMES = ["left", ".left", "left\nline", "l" * 255]


def leave():
    made = 0
    for place in PLACES:
        for name in NAMES:
            try:
                os.close(os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY, 0o600))
                os.chmod(f"{place}/{name}", 0)
                made += 1
            except OSError:
                pass
        for act in (lambda: os.mkdir(f"{place}/shut", 0), lambda: os.symlink("/", f"{place}/link"),
                    lambda: os.mkfifo(f"{place}/fifo")):
            try:
                act()
            except OSError:
                pass
    if made == 0:
        raise OSError(errno.EACCES, "")


def look():
    seen = [f"{place} {word(lambda: sorted(os.listdir(place)))}" for place in ("/work", "/tmp", "/dev/shm", "/code", "/dev", "/etc",
                                                                                 "/", "/var")]
    for place in PLACES:
        for name in [*NAMES, "shut", "link", "fifo"]:
            if os.path.lexists(f"{place}/{name}"):
                seen.append(f"{place}/{name!r}")
        seen.append(f"{place} {word(lambda: oct(os.stat(place).st_mode))}")
    space = os.statvfs("/work")
    return [*seen, f"space {space.f_bfree} inodes {space.f_ffree}"]

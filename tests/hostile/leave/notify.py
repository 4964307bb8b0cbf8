# Watches for changes: with as many instances as the user may have, and in nobody's hands.
def leave():
    made = []
    while len(made) < 120:
        fd = libc.inotify_init1(0)
        if fd < 0:
            break
        libc.inotify_add_watch(fd, b"/usr", 0xfff)
        libc.inotify_add_watch(fd, b"/etc", 0xfff)
        made.append(fd)
    for start in range(0, len(made), 50):
        keep_in_flight(made[start:start + 50])
    if not made:
        checked(-1)


def look():
    count = 0
    while count < 120 and libc.inotify_init1(0) >= 0:
        count += 1
    return [f"{count} instances"]

# Keys in every keyring of the process, the session and the user.
ADD_KEY, REQUEST_KEY, KEYCTL = 248, 249, 250


def leave():
    made = 0
    for ring in range(-1, -6, -1):
        made += libc.syscall(ADD_KEY, b"user", b"left", b"x", ctypes.c_size_t(1), ring) >= 0
    if made == 0:
        checked(-1)


def look():
    return [word(lambda: checked(libc.syscall(REQUEST_KEY, b"user", b"left", None, 0))),
            word(lambda: checked(libc.syscall(KEYCTL, 0, -3, 0))), word(lambda: checked(libc.syscall(KEYCTL, 10, -4, b"user", b"left", 0)))]

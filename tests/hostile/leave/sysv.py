# System V shared memory, semaphores and messages, in nobody's hands.
KEY, CREATE = 0x6c656674, 0o1666
libc.shmat.restype = ctypes.c_void_p


def leave():
    shared = checked(libc.shmget(KEY, 4096, CREATE))
    ctypes.memmove(libc.shmat(shared, None, 0), b"left", 4)
    checked(libc.semget(KEY, 3, CREATE))
    queue = checked(libc.msgget(KEY, CREATE))
    checked(libc.msgsnd(queue, struct.pack("l4s", 1, b"left"), 4, 0))


def look():
    return [word(lambda: checked(libc.shmget(KEY, 0, 0))), word(lambda: checked(libc.semget(KEY, 0, 0))),
            word(lambda: checked(libc.msgget(KEY, 0))), f"next {checked(libc.shmget(0, 4096, CREATE))}"]

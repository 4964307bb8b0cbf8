# POSIX message queues (with a message in it), shared memory and semaphores, and what a user may have of
# queues in all.
def leave():
    queue = libc.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666, None)
    libc.mq_send(queue, b"left", 4, 0)
    checked(libc.shm_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666))
    libc.sem_open(b"/left-sem", os.O_CREAT, 0o666, 1)
    for number in range(100):
        if libc.mq_open(f"/left{number}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None) < 0:
            break


def look():
    count = 0
    while count < 50 and libc.mq_open(f"/look{count}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None) >= 0:
        count += 1
    return [word(lambda: checked(libc.mq_open(b"/left", os.O_RDWR))), word(lambda: checked(libc.shm_open(b"/left", os.O_RDWR))),
            word(lambda: os.stat("/dev/shm/sem.left-sem").st_mode), f"{count} queues"]

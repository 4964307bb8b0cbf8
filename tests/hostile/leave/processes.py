# Processes of all sorts: daemons, stopped ones, ones that have ended and are not waited for, threads.
def leave():
    for kind in range(9):
        if os.fork() == 0:
            if kind % 3 == 0:
                os._exit(0)
            os.setsid()
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            if kind % 3 == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            if os.fork() == 0:
                time.sleep(30)
            os._exit(0)
    time.sleep(0.1)


def look():
    count = 0
    while count < 100:
        try:
            pid = os.fork()
        except OSError:
            break
        if pid == 0:
            time.sleep(30)
        count += 1
    for number in range(os.getpid() + 1, os.getpid() + 101):
        try:
            os.kill(number, signal.SIGKILL)
        except OSError:
            pass
    return [f"{count} more", f"at the start {START}"]


START = sorted(name for name in os.listdir("/proc") if name.isdigit())

# Timers of every kind that would go off in a later run, and signals that wait to be taken.
def leave():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    for kind in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(kind, 0.3, 0.3)
    timer = ctypes.c_void_p()
    checked(libc.timer_create(time.CLOCK_MONOTONIC, None, ctypes.byref(timer)))
    checked(libc.timer_settime(timer, 0, struct.pack("qqqq", 0, 300000000, 0, 300000000), None))
    os.kill(os.getpid(), signal.SIGUSR1)
    if os.fork() == 0:
        time.sleep(30)


def look():
    timers = [signal.getitimer(kind)[0] > 0 for kind in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    return [timers, word(lambda: open("/proc/self/timers").read().count("ID:")), sorted(signal.sigpending()),
            sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))]

# All that one process hands down to another: limits, priorities, signals, masks, names, adjustments,
# the state of the three streams.
VOLATILE = ("Pid:", "Tgid:", "Ngid:", "PPid:", "NSpid:", "NSpgid:", "NSsid:", "NStgid:", "Vm", "Rss", "Hugetlb", "voluntary",
            "nonvoluntary", "Threads:", "Speculation", "FDSize", "Cpus_allowed_list", "x86_Thread")
LIMITS = range(16)
FILES = ["oom_score_adj", "coredump_filter", "timerslack_ns", "loginuid", "sessionid", "comm", "personality",
         "cpuset", "cgroup", "setgroups", "uid_map"]


def leave():
    for number in LIMITS:
        try:
            resource.setrlimit(number, (0 if number in (4, 8, 11) else resource.getrlimit(number)[0], resource.getrlimit(number)[1]))
        except (OSError, ValueError):
            pass
    for path, text in (("oom_score_adj", "1000"), ("coredump_filter", "0"), ("timerslack_ns", "1"), ("comm", "left")):
        try:
            with open(f"/proc/self/{path}", "w") as file:
                file.write(text)
        except OSError:
            pass
    os.nice(10)
    os.umask(0o077)
    libc.prctl(4, 0)  # not dumpable
    libc.prctl(36, 1)  # takes orphans
    libc.prctl(1, signal.SIGUSR1)  # the signal at its parent's end
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for fd in range(3):
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_APPEND)
    fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 8192)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def look():
    with open("/proc/self/status") as file:
        status = [line.strip() for line in file if not line.startswith(VOLATILE)]
    files = [f"{name} {word(lambda: open(f'/proc/self/{name}').read().strip())}" for name in FILES]
    limits = [f"limit {number} {resource.getrlimit(number)}" for number in LIMITS]
    streams = [f"{fd} {fcntl.fcntl(fd, fcntl.F_GETFL)} {word(lambda: fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ))}" for fd in range(3)]
    process = [os.getpid(), os.getppid(), os.getsid(0), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0),
               sorted(os.sched_getaffinity(0)), os.getcwd(), sorted(os.environ.items()), os.listdir("/proc/self/fd"), os.getgroups()]
    ignored = [number for number in range(1, 32) if signal.getsignal(number) == signal.SIG_IGN]
    return [*status, *files, *limits, *streams, process, ignored]

# Hostile probe fs-proc-sys-write (filesystem).
# Opens the control files of /proc and /sys for writing: sysrq, core pattern, modprobe, device
# events, control groups. It never writes.
# Prints ESCAPED for each thing that got through, CONTAINED for what did not.
import glob
import os

from probe import say

say("START", "fs-proc-sys-write")
# Only opened for writing, never written.
patterns = (
    "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname", "/proc/sys/kernel/sysrq", "/proc/sys/kernel/panic",
    "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/perf_event_paranoid", "/proc/sys/kernel/threads-max",
    "/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max",
    "/proc/sys/fs/binfmt_misc/register", "/proc/sys/fs/suid_dumpable", "/proc/sys/fs/protected_symlinks",
    "/proc/sys/net/core/bpf_jit_enable", "/proc/irq/*/smp_affinity", "/proc/acpi/*", "/proc/bus/pci/*/*", "/proc/scsi/scsi", "/proc/mtrr",
    "/sys/kernel/uevent_helper", "/sys/kernel/vmcoreinfo", "/sys/power/state", "/sys/kernel/mm/*/*",
    "/sys/kernel/debug/tracing/tracing_on", "/sys/kernel/tracing/tracing_on", "/sys/kernel/security/*", "/sys/module/*/parameters/*",
    "/sys/class/net/*/mtu", "/sys/block/*/uevent", "/sys/devices/system/cpu/cpu*/online",
    "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/*/release_agent", "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/*/cgroup.procs", "/sys/fs/cgroup/*/*/cgroup.procs", "/sys/fs/cgroup/*/notify_on_release",
    "/sys/fs/cgroup/*.max", "/sys/fs/cgroup/cgroup.subtree_control",
)
tries = 0
for pattern in patterns:
    for path in sorted(glob.glob(pattern))[:40]:
        if os.path.isdir(path):
            continue
        tries += 1
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            say("ESCAPED", f"can write {path}")
        except OSError:
            pass
say("CONTAINED", f"the rest of {tries} control files")

#!/usr/bin/env python3
"""auditrun top on a terminal: it takes the screen, is drawn again, shows foreign text harmlessly, keeps
within the window, and gives the terminal back as it was, however it ends. Prints TAP."""
import fcntl
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

SOURCE = pathlib.Path(os.environ.get("AUDITRUN_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("AUDITRUN_BUILD", SOURCE / "build")).resolve()
AUDITRUN = str(BUILD / "auditrun")
PATIENCE_S = 30
TAKE, GIVE_BACK = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
ROWS, COLUMNS = 12, 100
EVIL = "ac\u202eme"  # turns the direction of writing; control characters are refused by the daemon

number = failed = 0


def tell(name, good, why=""):
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    for line in [] if good else str(why).splitlines():
        print(f"# {line}", flush=True)


class Screen:
    """auditrun top on a terminal of its own, of which this end is ours."""

    def __init__(self, *words):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(theirs)
        environment = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
        environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen([AUDITRUN, "top", *words], stdin=theirs, stdout=theirs, stderr=theirs,
                                        env=environment, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.theirs = theirs
        self.seen = b""

    def read_until(self, holds):
        end = time.monotonic() + PATIENCE_S
        while not holds(self.seen):
            ready, _, _ = select.select([self.ours], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            self.seen += os.read(self.ours, 65536)
        return True

    def ends_with(self, status):
        """Reads on until it has ended, which it must with this status; the terminal is as it was."""
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.ours], [], [], 0.05)[0]:
                self.seen += os.read(self.ours, 65536)
        while select.select([self.ours], [], [], 0)[0]:
            self.seen += os.read(self.ours, 65536)
        good = (self.process.poll() == status and self.seen.startswith(TAKE) and
                self.seen.count(GIVE_BACK) == 1 and termios.tcgetattr(self.theirs) == self.before)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)
        return good


def pictures(seen):
    return seen.split(b"\x1b[H")[1:]


def check_screens(daemon):
    screen = Screen("--interval", "100ms")
    tell("pictures come one after the other", screen.read_until(lambda seen: len(pictures(seen)) >= 4), screen.seen)
    picture = pictures(screen.seen)[1]
    tell("each within the window", picture.count(b"\n") < ROWS, picture)
    tell("with what runs", b"running" in picture and b"COMPANY" in picture, picture)
    tell("foreign text is shown and not obeyed", b"\\u{202e}" in picture and "\u202e".encode() not in screen.seen,
         picture)
    os.write(screen.ours, b"q")
    tell("q ends it", screen.ends_with(0), screen.seen[-200:])

    screen = Screen("--interval", "60s")
    screen.read_until(lambda seen: len(pictures(seen)) >= 1 and b"\x1b[J" in seen)
    fcntl.ioctl(screen.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 6, 60, 0, 0))
    screen.process.send_signal(signal.SIGWINCH)
    tell("another size is another picture", screen.read_until(lambda seen: len(pictures(seen)) >= 2), screen.seen)
    screen.read_until(lambda seen: pictures(seen)[-1].endswith(b"\x1b[J"))
    tell("within the new one", pictures(screen.seen)[-1].count(b"\n") < 6, pictures(screen.seen)[-1])
    screen.process.send_signal(signal.SIGTERM)
    tell("a signal ends it", screen.ends_with(0), screen.seen[-200:])

    screen = Screen("--interval", "60s")
    screen.read_until(lambda seen: b"\x1b[J" in seen)
    os.write(screen.ours, b"\x03")
    tell("control-C ends it", screen.ends_with(0), screen.seen[-200:])

    screen = Screen("--interval", "100ms")
    screen.read_until(lambda seen: len(pictures(seen)) >= 2)
    daemon.terminate()
    tell("a daemon that ends: 69, told on the terminal that was given back",
         screen.ends_with(69) and screen.seen.rfind(b"auditrun: ") > screen.seen.find(GIVE_BACK), screen.seen[-400:])


def run_one(environment):
    subprocess.run([AUDITRUN, "run", "--quiet", "--language", "fake", "-"], input=b"exit 3", env=environment,
                   check=False, stdout=subprocess.DEVNULL)


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="auditrun-screen-"))
    config = folder / "auditrun.conf"
    config.write_text(f"[socket]\npath = {folder}/auditrun.sock\n[ledger]\nurl = sqlite:{folder}/ledger.db\n"
                      f"[journal]\ndirectory = {folder}/journal\n"
                      f"[executor fake]\nprogram = {BUILD}/tests/tools/fake_provider\nargs = well\nslots = 2\n"
                      f"[client local]\nuid = {os.getuid()}\ncompanies = *\n")
    os.environ.pop("AUDITRUN_SOCKET", None)
    os.environ.update(AUDITRUN_CONFIG=str(config), AUDITRUN_COMPANY=EVIL, AUDITRUN_ACTOR="ana",
                      AUDITRUN_PURPOSE="test")
    subprocess.run([AUDITRUN, "ledger", "init"], check=True, stdout=subprocess.DEVNULL)
    daemon = subprocess.Popen([str(BUILD / "auditrund"), "--config", str(config)], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        while subprocess.run([AUDITRUN, "status"], check=False, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL).returncode != 0 and time.monotonic() < end:
            time.sleep(0.05)
        for _ in range(25):
            run_one(dict(os.environ))
        check_screens(daemon)
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE_S)
        shutil.rmtree(folder)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

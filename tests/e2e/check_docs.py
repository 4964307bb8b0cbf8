#!/usr/bin/env python3
"""What the documents show is what happens. Prints TAP.

README.md with docs/ledger.md, docs/tutorial.md and docs/incident.md: the `sh` blocks are run one after the other in
one shell, in a folder that has the built programs as build/; a `text` block behind one is its output, where `...`
stands for anything in a line.
docs/protocol.md: each `wire` block is a connection to a real daemon; lines with `>` are sent, lines with `<` must
come, in any order, where "..." stands for any value and a member "..." for more members.
man/: mandoc finds nothing to warn of. Everywhere: links and paths lead somewhere; the stage table is that of run.c.
"""
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("AUDITRUN_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("AUDITRUN_BUILD", SOURCE / "build")).resolve()
PATIENCE_S = 60
ANY = "..."

number = failed = 0


def tell(name, good, why=""):
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    for line in [] if good else str(why).splitlines():
        print(f"# {line}", flush=True)


def blocks(document):
    """The fenced blocks: (line, kind, text)."""
    kind, start, lines = None, 0, []
    for at, line in enumerate((SOURCE / document).read_text().splitlines(), 1):
        if kind is None and line.startswith("```"):
            kind, start, lines = line[3:].strip(), at, []
        elif kind is not None and line == "```":
            yield start, kind, "\n".join(lines)
            kind = None
        elif kind is not None:
            lines.append(line)
    assert kind is None, f"{document}:{start}: the block does not end"


# ---- shell --------------------------------------------------------------------------------------------


def shell_steps(document):
    """[line, commands, expected output or None]"""
    steps, shell_before = [], False
    for line, kind, text in blocks(document):
        if kind == "sh":
            steps.append([f"{document}:{line}", text, None])
        elif kind == "text" and shell_before:
            steps[-1][2] = text
        shell_before = kind == "sh"
    assert steps, f"{document} has no commands"
    return steps


def output_fits(expected, output):
    """Every expected line is there, in order."""
    lines = iter(output.splitlines())
    for want in expected.splitlines():
        pattern = ".*".join(re.escape(" ".join(part.split())) for part in want.split(ANY))
        pattern = pattern.replace(r"\ .*", r"\ ?.*").replace(r".*\ ", r".*\ ?")
        if not any(re.fullmatch(pattern, " ".join(line.split())) for line in lines):
            return f"no such line: {want}"
    return ""


def run_step(shell, step):
    name, commands, expected = step
    shell.stdin.write(f"{commands}\nstatus=$?; printf '\\n@@ %s\\n' $status\n")
    shell.stdin.flush()
    output, deadline = "", time.monotonic() + PATIENCE_S
    while not (ended := re.search(r"\n@@ (\d+)\n$", output)):
        ready, _, _ = select.select([shell.stdout], [], [], max(0, deadline - time.monotonic()))
        chunk = os.read(shell.stdout.fileno(), 65536).decode() if ready else ""
        if not chunk:
            tell(name, False, f"no end of the commands\n{output}")
            return False
        output += chunk
    output = output[:ended.start()]
    why = output_fits(expected, output) if expected else ""
    good = ended[1] == "0" and not why
    tell(name, good, f"{why}\nexit status {ended[1]}\n{output}")
    return good


def check_shell(steps, last, left):
    """Runs the steps, then, whatever they came to, the last one; nothing may be left then of this folder."""
    with tempfile.TemporaryDirectory(prefix="auditrun-docs.") as folder:
        for name, target in (("build", BUILD), ("etc", SOURCE / "etc"), ("executors", SOURCE / "executors")):
            os.symlink(target, f"{folder}/{name}")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AUDITRUN_")}
        shell = subprocess.Popen(
            ["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        try:
            good = all(run_step(shell, step) for step in steps)
            log = pathlib.Path(folder, left, "log")
            if not good and log.exists():
                print("\n".join(f"# log: {line}" for line in log.read_text().splitlines()[-20:]))
            # The last one ends the daemon: also when something went wrong before.
            run_step(shell, last)
            if good:
                tell(f"nothing is left of {left}", not os.path.exists(f"{folder}/{left}"))
        finally:
            shell.stdin.close()
            shell.wait(PATIENCE_S)


# ---- wire ---------------------------------------------------------------------------------------------


def fits(wanted, got):
    if wanted == ANY:
        return True
    if isinstance(wanted, dict):
        more = ANY in wanted
        return (isinstance(got, dict)
                and all(k in got and fits(v, got[k]) for k, v in wanted.items() if k != ANY)
                and (more or wanted.keys() == got.keys()))
    if isinstance(wanted, list):
        return isinstance(got, list) and len(wanted) == len(got) and all(map(fits, wanted, got))
    return type(wanted) is type(got) and wanted == got


def messages(text):
    """(mark, message): what is broken into lines is put together again."""
    mark, parts = None, []
    for line in text.splitlines():
        if not parts:
            mark = line[0]
        assert line[0] == mark and mark in "<>" and line[1] == " ", f"not a line of a wire block: {line}"
        parts.append(line[2:])
        try:
            yield mark, " ".join(json.dumps(json.loads("".join(parts))).splitlines())
            parts = []
        except json.JSONDecodeError:
            if mark == ">" and not parts[0].lstrip().startswith(("{", "[")):
                yield mark, parts[0]
                parts = []
    assert not parts, f"this does not end: {parts[0]}"


def exchange(path, text):
    """"" or what was wrong. Answers may come in another order than they are shown."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    connection.connect(path)
    with connection, connection.makefile("r", encoding="utf-8") as answers:
        open_answers, after = [], None
        for mark, message in [*messages(text), (">", None)]:
            if mark == ">" and after == "<":  # an exchange is over before the next one begins
                while open_answers:
                    got = json.loads(answers.readline() or "null")
                    wanted = next((w for w in open_answers if fits(w, got)), None)
                    if wanted is None:
                        return f"came: {json.dumps(got)}\nwanted: {json.dumps(open_answers)}"
                    open_answers.remove(wanted)
            if mark == "<":
                open_answers.append(json.loads(message))
            elif message is not None:
                connection.sendall(message.encode() + b"\n")
            after = mark
    return ""


CONFIG = """[socket]
path = {folder}/socket
[ledger]
url = sqlite:{folder}/ledger.db
[journal]
directory = {folder}/journal
[executor namespace]
program = {build}/auditrun-executor-namespace
args = --languages {source}/tests/languages.d --lib {source}/executors/lib
[client docs]
uid = {uid}
companies = acme
switches = yes
"""


def wait_until_ready(daemon, socket_path):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and daemon.poll() is None:
        done = subprocess.run([BUILD / "auditrun", "status", "--socket", socket_path], capture_output=True,
                              check=False)
        if done.returncode == 0:
            return
        time.sleep(0.05)
    raise RuntimeError("the daemon does not answer")


def check_wire(document):
    examples = [(line, text) for line, kind, text in blocks(document) if kind == "wire"]
    assert examples, f"{document} has no examples"
    with tempfile.TemporaryDirectory(prefix="auditrun-docs.") as folder:
        os.mkdir(f"{folder}/journal")
        config = pathlib.Path(folder, "auditrun.conf")
        config.write_text(CONFIG.format(folder=folder, build=BUILD, source=SOURCE, uid=os.getuid()))
        subprocess.run([BUILD / "auditrun", "ledger", "init", "--config", config], check=True,
                       stdout=subprocess.DEVNULL)
        with open(f"{folder}/log", "w+", encoding="utf-8") as log, subprocess.Popen(
                [BUILD / "auditrund", "--config", config], stderr=log) as daemon:
            try:
                wait_until_ready(daemon, f"{folder}/socket")
                for line, text in examples:
                    why = exchange(f"{folder}/socket", text)
                    tell(f"{document}:{line}", not why, why)
            finally:
                daemon.terminate()
                status = daemon.wait(PATIENCE_S)
        tell("the daemon ended well", status == 0, pathlib.Path(folder, "log").read_text())


# ---- man pages ----------------------------------------------------------------------------------------


def check_man_pages():
    pages = sorted(str(page) for page in (SOURCE / "man").glob("*.[1-8]"))
    assert pages, "there are no man pages"
    if not shutil.which("mandoc"):
        tell("man pages # SKIP mandoc is missing", True)
        return
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *pages], capture_output=True, text=True, check=False)
    tell("man pages", done.returncode == 0, done.stdout + done.stderr)


# ---- what documents name ------------------------------------------------------------------------------


def check_names(document):
    """Links and paths lead somewhere; an X in a name stands for a name."""
    text = (SOURCE / document).read_text()
    folder = (SOURCE / document).parent
    links = [folder / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
    paths = [SOURCE / path for path in re.findall(
        r"`((?:daemon|protocol|sinks|executors|cli|tests|docs|etc|man)/[\w./-]*)`", text)]
    lost = [str(path) for path in links + paths if "X" not in path.stem and not path.exists()]
    tell(f"{document}: {len(links)} links, {len(paths)} paths", not lost, "\n".join(lost))


def check_stages():
    """docs/architecture.md has the stage table of daemon/run.c."""
    source = (SOURCE / "daemon/run.c").read_text()
    stages = re.findall(r'\[RUN_\w+\] = \{"(\w+)", (?:(\w+)_stage|NULL)', source)
    wanted = [(word, f"`{stage}.c`" if stage else "") for word, stage in stages]
    shown = re.findall(r"^\| (\w+) \| (`\w+\.c`)? ?\| ", (SOURCE / "docs/architecture.md").read_text(), re.M)
    tell("docs/architecture.md: the stage table", len(wanted) == 9 and shown[:9] == wanted, f"{wanted}\n{shown}")


def main():
    check_man_pages()
    check_stages()
    for document in sorted(["README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (SOURCE / "docs").glob("*.md"))]):
        check_names(document)
    check_wire("docs/protocol.md")
    readme, tour = shell_steps("README.md"), shell_steps("docs/tutorial.md")
    check_shell(readme[:-1] + shell_steps("docs/ledger.md"), readme[-1], "try")
    check_shell(tour[:-1], tour[-1], "tour")
    night = shell_steps("docs/incident.md")
    check_shell(night[:-1], night[-1], "night")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

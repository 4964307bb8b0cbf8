#!/usr/bin/env bash
# The tools that say whether the tree is good must be able to say that it is not: run-checks counts each way
# in which a test program can end, lint-conventions finds each thing that it looks for.
set -u
cd "${AUDITRUN_SOURCE:-$(dirname "$0")/../..}" || exit 1
source=$PWD

work=$(mktemp -d "${TMPDIR:-/tmp}/check-tools.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT

number=0 failures=0

# expect NAME PATTERN TEXT: one TAP line; TEXT has a line that matches PATTERN.
expect() {
    number=$((number + 1))
    if grep -qE -- "$2" <<<"$3"; then
        echo "ok $number - $1"
    else
        failures=$((failures + 1))
        echo "not ok $number - $1"
        printf '%s\n' "$3" | sed 's/^/# /'
    fi
}

# program NAME BODY: a test program in shell.
program() {
    printf '#!/bin/bash\n%s\n' "$2" >"$work/$1"
    chmod +x "$work/$1"
}

# run ARGUMENT...: what run-checks prints, and its exit status on a last line of its own.
run() {
    "$source/tests/tools/run-checks" --log "$work/log" --timeout 60 "$@" 2>&1
    echo "exit $?"
}

program check_good 'echo "100%: Checks: 7, Failures: 0, Errors: 0"'
program check_failing 'echo "50%: Checks: 4, Failures: 1, Errors: 1"; exit 1'
program check_crashing 'echo "100%: Checks: 2, Failures: 0, Errors: 0"; ulimit -c 0; kill -SEGV $$'
program check_mute 'exit 3'
program check_impossible 'exit 77'
program check_tap.sh 'echo "ok 1 - a"; echo "not ok 2 - b"; echo "ok 3 - c # SKIP why"; exit 1'
# shellcheck disable=SC2016 # for the program to expand
program check_case '[[ ${CK_RUN_CASE-limits} != limits ]] && n=0
echo "100%: Checks: ${n-5}, Failures: 0, Errors: 0"'

out=$(run "$work/check_good")
expect 'a good program passes' '^100%: Checks: 7, Failures: 0, Errors: 0$' "$out"
expect 'a good program makes a good status' '^exit 0$' "$out"

out=$(run "$work"/check_good "$work"/check_failing "$work"/check_crashing "$work"/check_mute)
expect 'failures, errors, crashes and bad statuses are counted' '^73%: Checks: 15, Failures: 1, Errors: 3$' "$out"
expect 'a failure makes a bad status' '^exit 1$' "$out"
expect 'the failing programs are named' 'failed: .*check_failing .*check_crashing .*check_mute' "$out"

out=$(run "$work/check_tap.sh" "$work/check_impossible")
expect 'TAP and skipped programs are counted' '^50%: Checks: 2, Failures: 1, Errors: 0$' "$out"

out=$(run --only good "$work"/check_*)
expect 'a program is found by its short name' '^1 programs' "$out"
out=$(run --only case:limits "$work"/check_*)
expect 'a case of one program is found' '^100%: Checks: 5, Failures: 0, Errors: 0$' "$out"
out=$(run --only case:nothing "$work"/check_*)
expect 'no test at all is a failure' '^exit 1$' "$out"
out=$(run)
expect 'nothing to run is a failure' '^exit 1$' "$out"

# A tree of two bad files, seen by a copy of the tool.
mkdir -p "$work/tree/tests/tools" "$work/tree/tests/unit" "$work/tree/daemon"
cp tests/tools/lint-conventions "$work/tree/tests/tools/"
cat >"$work/tree/daemon/bad.c" <<'END'
#include "sinks/sqlite.h"
#include "cli/options.h"
/* strcpy( in a comment, "system(" in a literal */
static const char text[] = "popen(";
static void copy(char *to, const char *from)
{
    strcpy(to, from); /* and */ my_system(to);
}
END
touch "$work/tree/daemon/bad.h"
{
    printf '/*\n * A long one.\n */\nstatic void wait(void)\n{\n'
    echo '    usleep(1);'
    for ((i = 0; i < 98; i++)); do echo '    poll_once();'; done
    echo '}'
    for ((i = 0; i < 500; i++)); do echo; done
} >"$work/tree/tests/unit/check_long.c"
echo "// FIX""ME: later" >"$work/tree/README.md"

out=$("$work/tree/tests/tools/lint-conventions" daemon/bad.c tests/unit/check_long.c 2>&1; echo "exit $?")
expect 'a missing opening comment' '^daemon/bad.c:1: does not open with a comment' "$out"
expect 'a header of its own that is not included' '^daemon/bad.c:1: does not include its own' "$out"
expect 'a backend in the daemon' '^daemon/bad.c:1: daemon may not include "sinks/sqlite.h"' "$out"
expect 'a dependency against the direction' '^daemon/bad.c:2: daemon may not include "cli/' "$out"
expect 'a forbidden call' '^daemon/bad.c:7: forbidden call: strcpy$' "$out"
expect 'no call in a comment, in a literal or in a longer name' '^1$' "$(grep -c forbidden <<<"$out")"
expect 'a test that waits for a time' '^tests/unit/check_long.c:6: a test waits .* usleep$' "$out"
expect 'a long function' '^tests/unit/check_long.c:5: function of 101 lines' "$out"
expect 'a long file' '^tests/unit/check_long.c:605: has 605 lines' "$out"
expect 'something unfinished' '^README.md:1:.*unfinished' "$out"
expect 'findings make a bad status' '^exit 1$' "$out"

echo "1..$number"
((failures == 0))

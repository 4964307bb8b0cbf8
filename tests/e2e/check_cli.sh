#!/usr/bin/env bash
# The command line against a real daemon: exit codes, output, files that come back, interrupts, and the
# ledger afterwards. TAP. The daemon is a private one in a temporary folder that goes away at the end.
# shellcheck disable=SC2317 # the helpers are called through check, wait_for and trap
set -u

# shellcheck source=../lib/cli.sh
source "${AUDITRUN_SOURCE:?}/tests/lib/cli.sh" || exit 1
daemon=''
folder=$(mktemp -d "${TMPDIR:-/tmp}/check-cli.XXXXXX") || exit 1

cleanup() {
    if [[ -n $daemon ]]; then
        kill -TERM "$daemon" 2>/dev/null
        wait "$daemon"
    fi
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
cd "$folder" || exit 1

# ---- a daemon -------------------------------------------------------------------------------------

mkdir journal
cat >auditrun.conf <<END
[socket]
path = $folder/auditrun.sock
[ledger]
url = sqlite:$folder/ledger.db
[journal]
directory = $folder/journal
[executor namespace]
program = $AUDITRUN_BUILD/auditrun-executor-namespace
args = --languages $AUDITRUN_SOURCE/tests/languages.d
slots = 2
[client local]
uid = $(id -u)
companies = acme
END
unset AUDITRUN_SOCKET
export AUDITRUN_CONFIG=$folder/auditrun.conf
export AUDITRUN_COMPANY=acme AUDITRUN_ACTOR=ana AUDITRUN_PURPOSE=test

check 'without a daemon: 69, and what to do' tells 69 err 'Is auditrund running' status
check 'a ledger is made ready' ends 0 ledger init
check 'and again, without harm' tells 0 out already ledger init
"$AUDITRUN_BUILD/auditrund" --config auditrun.conf --foreground >daemon.log 2>&1 </dev/null &
daemon=$!
wait_for "$auditrun" status >/dev/null 2>&1 || {
    echo 'Bail out! the daemon does not answer'
    exit 1
}

# ---- runs -----------------------------------------------------------------------------------------

# shellcheck disable=SC2016 # the dollars are the code's
echo 'echo "out $1 $K"; echo err >&2; cat in/x >made; exit 3' >code.sh
echo -n input >local.txt
check 'the code ends with 3, and so does run' ends 3 run --env K=v --file in/x=local.txt \
    --output-file made=back.txt code.sh -- arg
check 'its stdout is stdout' has out 'out arg v'
check 'its stderr is stderr, without a verdict' has err err
check 'a file comes back' has back.txt input
check 'a verdict when asked for' tells 3 err 'failed (exit_nonzero), exit code 3' run --verbose code.sh
echo 'kill -SEGV $$' >signal.sh
check 'killed by a signal: 128 + 11' ends 139 run signal.sh
echo 'while :; do :; done' >forever.sh
check 'timed out: 124, with a verdict unasked' tells 124 err 'timed_out (wall_clock)' \
    run --wall 300ms forever.sh
check 'a second one' ends 124 run --quiet --wall 300ms forever.sh
check 'quiet means quiet' has err ''
echo 'echo 0123456789abcdef' >talk.sh
check 'too much output: 125' tells 125 err 'limit_exceeded (output)' run --output-limit 10 talk.sh
check 'denied: 77, the network is listed' tells 77 err \
    'denied.*network: requested open; offered: none' run --network open --secret KEY forever.sh
check 'and the secret' says err 'denied.*secrets: requested KEY; offered: no'
check 'another company: 77' tells 77 err 'unauthorized (company_not_allowed)' \
    run --company other forever.sh
check 'a bad host: 65, from that option' tells 65 err '--host' run --host BAD: forever.sh
check 'as JSON' tells 3 out '"status":"failed"' run --json code.sh
check 'in one line' lines 1
check 'an error as JSON' tells 65 out '"code":-32602' run --json --host BAD: forever.sh
check 'a run with a key' ends 3 run --key k1 code.sh
check 'its repeat' ends 3 run --key k1 code.sh
check 'does not run again' has out ''
check 'another request under the key: 65' tells 65 err key_reused run --key k1 forever.sh
check 'its record by the key' tells 0 out 'hash is right *yes' record --company acme --key k1
check 'no such record: 66' ends 66 record 01937a5e-8c4f-7b21-9d3e-5f60718293a4
check 'no such run to cancel: 1' ends 1 cancel 01937a5e-8c4f-7b21-9d3e-5f60718293a4
check 'executors' tells 0 out bash executors
check 'status' tells 0 out '^ledger' status
check 'with the executors' says out '^executors  *namespace: ready, [0-9]* busy, [0-9]* idle$'
check 'and the journal' says out '^journal .* of 1 GiB, 0 open, nothing kept$'
check 'and the switches' says out '^switches  *none is off$'
check 'top is printed once' tells 0 out 'acme  *timed_out  *wall_clock ' top
check 'with nothing that runs' says out '^runs  *0 running, 0 queued, '
check 'and with a title for what does' says out '^RUN  *COMPANY  *ACTOR .*STATE'
check 'top as JSON' tells 0 out '"reason":"wall_clock"' top --json --count 2 --interval 100ms
check 'a line a picture' lines 2
check 'too often: 64' ends 64 top --interval 10ms

# ---- output while it runs -------------------------------------------------------------------------

has_begun() { has out one && has err two; }
echo 'echo one; echo two >&2; sleep 60' >slow.sh
"$auditrun" run --stream --quiet slow.sh >out 2>err </dev/null &
run=$!
check 'output comes while the code runs' wait_for has_begun
kill -TERM "$run"
wait "$run"
status=$?
check 'the end comes as ever' test "$status" = 130
check 'and nothing twice' has_begun
# shellcheck disable=SC2016 # the dollars are the code's
printf '%s\n' 'i=0; while ((i < 20000)); do echo "line $i €"; echo "error $i" >&2; ((++i)); done' >much.sh
check 'much output' ends 0 run --quiet much.sh
mv out out.whole && mv err err.whole
check 'much output, streamed' ends 0 run --quiet --stream much.sh
check 'is the same' cmp -s out out.whole
check 'on both streams' cmp -s err err.whole
printf '%s\n' 'printf "\342\202"; sleep 0.2; printf "\254\377"' >half.sh
check 'half a character at a time' ends 0 run --quiet --stream half.sh
check 'is whole, and so is what is none' test "$(od -An -tx1 <out)" = ' e2 82 ac ff'
check 'as JSON: pieces, then the result' ends 0 run --json --stream half.sh
check 'the first line is a piece' test "$(head -n 1 out | grep -c '"stream":"stdout"')" = 1
check 'the last is the result' test "$(tail -n 1 out | grep -c '"status":"succeeded"')" = 1

# ---- cancelling -----------------------------------------------------------------------------------

is_running() { "$auditrun" status --json 2>/dev/null | grep -q '"running":1'; }

"$auditrun" run forever.sh >out 2>err </dev/null &
run=$!
check 'a run runs' wait_for is_running
kill -TERM "$run"
wait "$run"
status=$?
check 'interrupted: 130' test "$status" = 130
check 'and the answer was waited for' says err 'cancelled (client_cancelled)'

# ---- the ledger -----------------------------------------------------------------------------------

kill -TERM "$daemon"
wait "$daemon"
status=$?
daemon=''
check 'the daemon ends' test "$status" = 0
check 'list, with a filter' ends 0 ledger list --json --status timed_out
check 'two timed out' lines 2
check 'list by the beginning of a hash' tells 0 out killed_by_signal ledger list --json \
    --code-hash "$(sha256sum signal.sh | cut -c 1-8)"
check 'one run of that code' lines 1
run_id=$(sed 's/.*"run_id":"\([^"]*\)".*/\1/' out)
check 'show it' tells 0 out '^signal *11$' ledger show "$run_id"
check 'with a limit' ends 0 ledger list --json --limit 3 --since 1h
check 'so many' lines 3
check 'as a table' tells 0 out '^RECEIVED.*STATUS' ledger list
check 'verify' tells 0 out '^whole: ' verify
check 'verify as JSON' tells 0 out '"finding":"ok"' verify --json
check 'no such ledger: 2' ends 2 verify --ledger "sqlite:$folder/nothing/nothing.db"
status=0
"$auditrun" ledger list >/dev/full 2>err || status=$?
check 'a full disk: 74' test "$status" = 74

# ---- usage ----------------------------------------------------------------------------------------

for verb in run executors status top record cancel 'ledger init' 'ledger list' 'ledger show' verify; do
    read -r -a words <<<"$verb"
    check "$verb --help has examples" tells 0 out '^Example' "${words[@]}" --help
    check "$verb --nothing: 64" ends 64 "${words[@]}" --nothing
done
check 'no verb: 64' ends 64
check 'half a verb: 64' ends 64 ledger
check 'version' tells 0 out '^auditrun [0-9]' --version

echo "1..$number"
exit $((failures > 0))

# What the tests of the command line share: TAP, and auditrun with its output in the files out and err.
# For tests/e2e/check_cli*.sh, which go to their own folder first.
# shellcheck shell=bash disable=SC2317 # called through check, wait_for and trap
: "${AUDITRUN_BUILD:?}" "${AUDITRUN_SOURCE:?}"
auditrun=$AUDITRUN_BUILD/auditrun
number=0 failures=0 status=0

# wait_for COMMAND...: until it succeeds, 30 s at most.
wait_for() {
    local end=$((SECONDS + 30))
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.05
    done
}

# check WHAT CONDITION...: one line of TAP.
check() {
    local what=$1
    shift
    number=$((number + 1))
    if "$@"; then
        echo "ok $number - $what"
    else
        failures=$((failures + 1))
        echo "not ok $number - $what"
        printf '# exit status %s; %s\n' "$status" "$*"
        head -n 5 out err 2>/dev/null | sed 's/^/# /'
    fi
}

# ends WANTED ARGUMENT...: auditrun with these arguments ends so; its output is in out and err.
ends() {
    local wanted=$1
    shift
    status=0
    "$auditrun" "$@" >out 2>err </dev/null || status=$?
    ((status == wanted))
}

says() { grep -q -e "$2" "$1"; }
has() { [[ $(cat "$1") == "$2" ]]; }
lines() { (($(wc -l <out) == $1)); }

# tells WANTED FILE PATTERN ARGUMENT...: auditrun ends so, and a line of out or err matches.
tells() {
    local wanted=$1 file=$2 pattern=$3
    shift 3
    ends "$wanted" "$@" && says "$file" "$pattern"
}

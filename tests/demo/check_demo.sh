#!/usr/bin/env bash
# The guided tour holds, on both stores, and leaves nothing behind. TAP.
set -u

: "${AUDITRUN_BUILD:?}" "${AUDITRUN_SOURCE:?}"
number=0 failures=0
folder=$(mktemp -d "${TMPDIR:-/tmp}/check-demo.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT

# tour NAME ARGUMENT...
tour() {
    local name=$1
    shift
    number=$((number + 1))
    # Seven runs, and two events: the daemon's start and its executor.
    # The tour's own folder is within ours; PostgreSQL has to get through to its part of it.
    mkdir "$folder/$number" && chmod 711 "$folder" "$folder/$number" || exit 1
    if TMPDIR=$folder/$number "$AUDITRUN_SOURCE/tests/demo/demo" "$@" >"$folder/log" 2>&1 &&
        grep -q '^whole: 9 rows in 1 chain' "$folder/log" && rmdir "$folder/$number"; then
        echo "ok $number - $name"
    else
        failures=$((failures + 1))
        echo "not ok $number - $name"
        tail -n 40 "$folder/log" | sed 's/^/# /'
    fi
}

tour 'on SQLite'
if compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
    tour 'on PostgreSQL' --postgres
else
    number=$((number + 1))
    echo "ok $number - on PostgreSQL # SKIP it is not installed"
fi
echo "1..$number"
exit $((failures > 0))

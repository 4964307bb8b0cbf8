# shellcheck shell=bash
# One measurement each: the figures go to $folder/samples, a line each:
#     NAME P50_US P99_US RATE CPU_US FAULTS      (the last two: of one launch)
# Read by tests/bench/run, after host.sh.

note() { printf '%s %s %s %s %s %s\n' "$@" >>"$folder/samples"; }

# value NAME NUMBER: a figure of its own
value() { note "$1" "$2" 0 0 0 0; }

# In front of floor when a peer needs another view of the host.
wrapper=()

launches() { # NAME LAUNCHES WORKERS WHAT...: floor's options and the command; false: it does not work
    local figures
    figures=$("${wrapper[@]}" "$bench/floor" -n "$2" -c "$3" "${@:4}") || return
    # shellcheck disable=SC2086 # five figures
    note "$1" $figures
}

floor() { launches "$@" || fail "$1 could not be measured"; }

# A peer that breaks down is no reason to measure nothing else.
peer() {
    launches "$@" && return
    say "FAILED: $1 could not be measured"
    incomplete=1
}

requests() { # NAME DAEMON PARAMS EXPECTED CONNECTIONS (-n REQUESTS | -s SECONDS) [PAUSE_MS]
    local figures cpu_before faults_before runs=1 pause=()
    [[ $6 != -n ]] || runs=$7
    [[ -z ${8-} ]] || pause=(-p "$8")
    cpu_before=$(cpu_us "$2") faults_before=$(faults "$2")
    figures=$("$bench/load" "${pause[@]}" "$folder/$2/socket" "$folder/$3" "$4" "${@:5:3}") || {
        tail -n 20 "$folder/$2/log" >&2
        fail "$1 could not be measured"
    }
    # shellcheck disable=SC2086 # three figures
    note "$1" $figures $((($(cpu_us "$2") - cpu_before) / runs)) $((($(faults "$2") - faults_before) / runs))
}

audited() { # NAME DAEMON PARAMS CONNECTIONS RUNS [PAUSE_MS]
    requests "$1" "$2" "$3" '"status":"succeeded"' "$4" -n "$5" "${6-}"
}

denials() { # NAME DAEMON CONNECTIONS
    requests "$1" "$2" denied.json '"status":"capability_denied"' "$3" -s "$seconds"
}

# By number, not by time: on a busy machine connecting 64 clients alone can take seconds. The p50 is that of
# pgbench's own log of every transaction (its third field, in microseconds).
inserts() { # NAME CLIENTS EACH
    local rate middle
    quietly psql -q -c CHECKPOINT
    rm -f "$folder/pgbench"/log.*
    (cd "$folder/pgbench" &&
        quietly "$pg_bin/pgbench" -n -M prepared -c "$2" -j $(($2 > 1 ? 2 : 1)) -t "$3" -l --log-prefix=log \
            -f "$source_dir/tests/bench/anchor.pgbench")
    rate=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$folder/step.log")
    middle=$(cut -d ' ' -f 3 "$folder/pgbench"/log.* | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    [[ $rate && $middle ]] || fail 'pgbench did not tell its figures'
    note "$1" "$middle" 0 "$rate" 0 0
}

# Rows a second in transactions of 100, in a loop of its own.
loop_of_sqlite() { # NAME
    local rate
    rate=$("$bench/sqlite_floor" "$folder" 1 1 | sed -n 's/.*"bare_per_s":\([0-9]*\).*/\1/p')
    [[ $rate ]] || fail 'the loop of SQLite did not tell its rate'
    note "$1" 0 0 "$rate" 0 0
}

batches() { # NAME DATABASE BATCH ROWS
    local figures
    quietly psql -q -c CHECKPOINT
    figures=$("$bench/sink" "$(ledger_url "$2")" "$3" "$4") || fail "$1 could not be measured"
    # shellcheck disable=SC2086 # three figures
    note "$1" $figures 0 0
}

# A ledger of 100,000 rows a second of measuring, verified as often as there are rounds.
verified() { # NAME URL
    local line
    line=$("$bench/verify" --fill $((seconds * 100000)) "$2" "$rounds") || fail 'verify could not be measured'
    note "$1" 0 0 "$(sed -n 's/.*"cpu_per_s":\([0-9]*\).*/\1/p' <<<"$line")" 0 0
}

# memory_kib PID KEY: of its status
memory_kib() { sed -n "s/^$2:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$1/status"; }

# Pages that a process shares with nobody.
private_kib() { awk '/^Private_/ { sum += $2 } END { print sum + 0 }' "/proc/$1/smaps_rollup"; }

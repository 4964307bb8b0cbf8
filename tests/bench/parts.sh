# shellcheck shell=bash
# The parts of the bench: what each prepares (NAME_prepare), and what it measures in a round (NAME_round ROUND)
# or once, after the rounds (NAME_once). Names of samples are those that table.awk knows.
# Read by tests/bench/run, after the other files.

slot_floor=(-t "$folder/program")

# Starts a daemon that several parts want, once.
need_daemon() {
    [[ ! -e $folder/$1/pid ]] || return 0
    case $1 in
    postgres)
        if [[ -z ${tried_cluster-} ]]; then
            tried_cluster=1
            start_cluster || true
        fi
        ;;
    unsynced) # a journal in memory, where a sync costs nothing
        mkdir "$folder/unsynced" "$folder/unsynced/journal"
        mount -t tmpfs -o size=64m tmpfs "$folder/unsynced/journal"
        start_daemon unsynced "sqlite:$folder/unsynced.db"
        ;;
    *) start_daemon "$1" "sqlite:$folder/$1.db" ;;
    esac
}

# in_turn ROUND ONE OTHER: both, and in every other round the other first.
# shellcheck disable=SC2086 # words
in_turn() {
    if (($1 % 2)); then
        $2 && $3
    else
        $3 && $2
    fi
}

# ---- launch: P1, P2, P3, processor time, the peers --------------------------------------------------

# Between requests, in which a sandbox can be built ahead; the floor rests as long, for a fair anchor.
pause_ms=20

# The anchor is worth nothing without its walls: a shell within looks at them.
# shellcheck disable=SC2016 # expanded by that shell
check_floor() {
    local walls='
        status() { grep -q "^$1:[[:space:]]*$2\$" /proc/self/status; }
        status Seccomp_filters 2 && status NoNewPrivs 1 && status CapBnd 0000000000000000 &&
            status CapEff 0000000000000000 || exit 1
        ! touch /x && ! touch /usr/x && ! touch /program/x && touch /tmp/x && ! chmod 4755 /tmp/x || exit 2
        ! test -e /etc && ! test -e /proc/kcore && ! test -e /sys || exit 3
        ! unshare -U true && ! mount -t tmpfs x /tmp || exit 4
        test "$$" = 1 && test "$(wc -l </proc/self/uid_map)" = 1 && ! grep -q " 4294967295" /proc/self/uid_map || exit 5
        ! grep -v ":/\$" /proc/self/cgroup | grep -E ":(memory|pids)?:" || exit 6
        test "$(grep -c : /proc/self/net/dev)" = 1 || exit 7'
    "$bench/floor" -n 1 "${slot_floor[@]}" -u -- /bin/sh -c "$walls" >/dev/null 2>"$folder/step.log" ||
        fail "the floor lacks a wall: $(tail -n 1 "$folder/step.log")"
}

launch_prepare() {
    check_floor
    need_daemon sqlite
    need_daemon postgres
    find_peers
}

launch_round() { # ROUND
    floor floor.1 200 1 "${slot_floor[@]}" -- /program/true
    audited audited.1 sqlite true.json 1 200
    [[ -z $cluster ]] || audited postgres.1 postgres true.json 1 100
    floor floor-rested 40 1 -p "$pause_ms" "${slot_floor[@]}" -- /program/true
    audited audited-rested sqlite true.json 1 40 "$pause_ms"
    floor floor-ahead 40 1 -a -p "$pause_ms" "${slot_floor[@]}" -- /program/true
    floor floor.2 60 2 "${slot_floor[@]}" -- /program/true
    audited audited.2 sqlite true.json 2 120
    floor floor.8 25 8 "${slot_floor[@]}" -- /program/true
    audited audited.8 sqlite true.json 8 200
    [[ -z $cluster ]] || audited postgres.8 postgres true.json 8 200
    measure_peers "$1"
}

# ---- python: P4 -------------------------------------------------------------------------------------

python_prepare() {
    if [[ ! -x /usr/bin/python3 ]]; then
        skip 'P4: apt-get install python3'
        return
    fi
    need_daemon sqlite
}

python_round() {
    local python=(/usr/bin/python3 -I -c pass)
    [[ -x ${python[0]} ]] || return 0
    floor python-bare 20 1 -- "${python[@]}"
    floor python-floor 20 1 "${slot_floor[@]}" -u -- "${python[@]}"
    audited python-audited sqlite python.json 1 20
}

# ---- heap: P5, with lines that do not end in the daemon's own buffers -------------------------------

heap_connections=40 heap_line=6900000

heap_prepare() {
    need_daemon sqlite
    need_daemon heavy
    local before after
    before=$(memory_kib "$(daemon_pid heavy)" RssAnon)
    hold heavy "$heap_connections" line "$heap_line"
    after=$(memory_kib "$(daemon_pid heavy)" RssAnon)
    ((after - before >= 256 * 1024)) || fail "the heap has grown by $((after - before)) KiB only"
    value heap-grown $(((after - before) / 1024))
}

heap_round() { # ROUND
    in_turn "$1" 'audited heap-light sqlite true.json 1 100' 'audited heap-heavy heavy true.json 1 100'
}

# ---- memory: P11 ------------------------------------------------------------------------------------

memory_idle=1000 memory_slots=64

running() { "$build_dir/auditrun" status --json --socket "$folder/memory/socket" | tr -d ' \n' | sed -n 's/.*"running":\([0-9]*\).*/\1/p'; }

await_running() { # COUNT
    local end=$((SECONDS + 60))
    until [[ $(running) == "$1" ]]; do
        ((SECONDS < end)) || fail "not $1 runs are going after a minute"
        sleep 0.1
    done
}

# Private memory of all slots: the launcher and what it has started, while no run is going.
slots_kib() { # PID: prints the number of slots and the sum
    local launcher process sum=0 count=0
    for launcher in $(pgrep -P "$1"); do
        count=$((count + 1))
        for process in "$launcher" $(pgrep -P "$launcher"); do
            sum=$((sum + $(private_kib "$process")))
        done
    done
    printf '%d %d\n' "$count" "$sum"
}

# A daemon for each figure, for what one has grown by another cannot be seen to need. What a run in flight
# takes is told with its connection and the daemon's part of its slot.
# shellcheck disable=SC2046 # two figures
memory_once() {
    local pid before after
    start_daemon memory "sqlite:$folder/memory.db" "$memory_slots"
    pid=$(daemon_pid memory)
    audited memory-warm memory true.json 8 200
    value daemon-rss "$(memory_kib "$pid" VmRSS)"
    value daemon-private "$(private_kib "$pid")"
    before=$(memory_kib "$pid" RssAnon)
    hold memory "$memory_slots" run "$folder/wait.json"
    await_running "$memory_slots"
    after=$(memory_kib "$pid" RssAnon)
    set -- $(slots_kib "$pid")
    value run-bytes $(((after - before) * 1024 / memory_slots))
    value slot-running-kib $(($2 / $1))
    release
    await_running 0
    audited memory-warm memory true.json "$memory_slots" 256
    set -- $(slots_kib "$pid")
    value slot-kib $(($2 / $1))
    start_daemon idle "sqlite:$folder/idle.db"
    pid=$(daemon_pid idle)
    audited memory-warm idle true.json 8 200
    before=$(memory_kib "$pid" VmRSS)
    hold idle "$memory_idle" idle
    after=$(memory_kib "$pid" VmRSS)
    release
    value idle-bytes $(((after - before) * 1024 / memory_idle))
}

# ---- steps: where the time of one run goes ----------------------------------------------------------

steps_prepare() {
    need_daemon sqlite
    need_daemon unsynced
    need_daemon postgres
}

# Kept as lines `p50 name` for table.awk.
steps_once() {
    local daemon
    for daemon in sqlite unsynced ${cluster:+postgres}; do
        quietly "$bench/timeline" "$folder/$daemon/socket" "$folder/true.json" 200
        cp "$folder/step.log" "$folder/timeline.$daemon"
    done
    quietly "$bench/steps" "$folder/effective.json" 200 "$build_dir/auditrun-executor-namespace" \
        --languages "$folder/languages.d"
    cp "$folder/step.log" "$folder/steps"
}

# ---- ledger: P6 to P9, P12, P13 ---------------------------------------------------------------------

ledger_prepare() {
    need_daemon sqlite
    need_daemon unsynced
    need_daemon postgres
    [[ -n $cluster ]] || return 0
    mkdir -m 777 "$folder/pgbench"
    quietly psql -q -v ON_ERROR_STOP=1 -f "$source_dir/tests/bench/anchor.sql"
    make_ledger ledger
    [[ $older == 0 ]] || make_ledger older
    [[ $older == 0 ]] || quietly psql -q -v ON_ERROR_STOP=1 -v rows="$older" -d older -f "$source_dir/tests/bench/older.sql"
}

ledger_round() { # ROUND
    in_turn "$1" 'audited synced sqlite true.json 1 100' 'audited unsynced unsynced true.json 1 100'
    # The ledger's figures come from few rounds: each takes seconds.
    (($1 % 2 == 1)) || return 0
    loop_of_sqlite sqlite100
    denials sqlite64 sqlite 64
    [[ -n $cluster ]] || return 0
    inserts pgbench64 64 $((seconds * 100))
    inserts pgbench1 1 $((seconds * 500))
    denials denied1 postgres 1
    denials denied64 postgres 64
    denials denied1000 postgres 1000
    batches batch10 ledger 10 $((seconds * 2000))
    batches batch100 ledger 100 $((seconds * 5000))
    batches batch1000 ledger 1000 $((seconds * 8000))
    [[ $older == 0 ]] || batches older100 older 100 $((seconds * 5000))
}

ledger_once() {
    verified verified-sqlite "sqlite:$folder/verified.db"
    [[ -n $cluster ]] || return 0
    quietly psql -q -c 'CREATE DATABASE verified'
    verified verified-postgres "$(ledger_url verified)"
}

# ---- network: the proxy of runs ---------------------------------------------------------------------

network_round() { # ROUND
    local direct proxied rest
    read -r direct proxied rest < <("$bench/egress" throughput 512 1) || fail 'the proxy could not be measured'
    note network-direct 0 0 "$direct" 0 0
    note network-proxied 0 0 "$proxied" 0 0
    value network-processor "${rest#* }"
}

# 200 runs with 5 connections each, all at once.
network_once() {
    local rate beats middle late worst own rest
    read -r rate beats middle late worst own rest < <("$bench/egress" crowd 200 5 1024) ||
        fail 'the crowd could not be measured'
    say "the crowd: $rate MiB/s, $beats beats, late by $middle us (p50), $late (p99), $worst (worst), $rest (at rest)"
    value network-late "$late"
    value network-own "$own"
}

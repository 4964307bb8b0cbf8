# shellcheck shell=bash
# What the parts of the bench stand on: the folder, the program, daemons, a PostgreSQL cluster, groups
# that count processor time. All of it is private, and ended and taken away by cleanup().
# Read by tests/bench/run, which sets source_dir, build_dir and bench.

folder='' cluster='' pg_bin='' cpu_root='' cpu_file=''
daemons=() held=() at_end=()

fail() {
    printf 'bench: %s\n' "$*" >&2
    exit 1
}

skip() { printf 'bench: SKIPPED: %s\n' "$*" >&2; }

say() { printf 'bench: %s\n' "$*" >&2; }

quietly() { "$@" >"$folder/step.log" 2>&1 || { cat "$folder/step.log" >&2 && fail "this failed: $1"; }; }

as_postgres() { (cd / && runuser -u postgres -- "$@"); }

cleanup() {
    local status=$? pid group
    trap - EXIT INT TERM HUP
    for pid in "${held[@]}" "${daemons[@]}"; do
        kill -TERM "$pid" 2>/dev/null || continue
        wait "$pid" 2>/dev/null || true
    done
    ((${#at_end[@]} == 0)) || "${at_end[@]}" >/dev/null 2>&1 || true
    [[ -z $cluster ]] || as_postgres "$pg_bin/pg_ctl" -D "$cluster" -m fast -w stop >/dev/null 2>&1 || true
    if [[ -n $cpu_root ]]; then
        for group in "$cpu_root/auditrun-bench.$$".*; do
            rmdir "$group"/* "$group" 2>/dev/null || true
        done
    fi
    ! mountpoint -q "${folder:-/}/unsynced/journal" || umount "$folder/unsynced/journal"
    [[ -z $folder ]] || rm -rf "$folder"
    exit "$status"
}

# ---- processor time: a group a daemon, which its slots and their runs are born in -------------------

find_cpu_groups() {
    if [[ -e /sys/fs/cgroup/cpuacct/cpuacct.usage ]]; then
        cpu_root=/sys/fs/cgroup/cpuacct cpu_file=cpuacct.usage
    elif [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
        cpu_root=/sys/fs/cgroup cpu_file=cpu.stat
    else
        skip 'processor time of audited runs: there is no control group that counts it'
    fi
}

cpu_group() { printf '%s/auditrun-bench.%s.%s' "$cpu_root" "$$" "$1"; }

# The calling shell moves into the group of this name.
enter_cpu_group() {
    [[ -n $cpu_root ]] || return 0
    mkdir -p "$(cpu_group "$1")" && echo "$BASHPID" >"$(cpu_group "$1")/cgroup.procs"
}

# Microseconds that a daemon, its slots and their runs have used.
cpu_us() {
    local file
    file=$(cpu_group "$1")/$cpu_file
    if [[ -z $cpu_root ]]; then
        echo 0
    elif [[ $cpu_file == cpu.stat ]]; then
        sed -n 's/^usage_usec //p' "$file"
    else
        echo $(($(<"$file") / 1000))
    fi
}

# Page faults of a daemon, its slots and their runs: its own, and those of all that has been waited for.
faults() {
    local pid sum=0 fields
    [[ -e $folder/$1/pid ]] || return 0
    for pid in "$(daemon_pid "$1")" $(pgrep -P "$(daemon_pid "$1")"); do
        # The name of a program may hold anything: what counts begins behind it.
        fields=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || continue
        # shellcheck disable=SC2086 # fields
        set -- $fields
        sum=$((sum + $8 + $9 + ${10} + ${11}))
    done
    echo "$sum"
}

# ---- the program: one that does nothing, the same for all -------------------------------------------

make_program() {
    mkdir "$folder/program" "$folder/languages.d"
    printf 'int main(void)\n{\n    return 0;\n}\n' >"$folder/true.c"
    quietly "${CC:-cc}" -static -Os -o "$folder/program/true" "$folder/true.c"
    mount --bind "$folder/program/true" /usr/bin/true
    cat >"$folder/languages.d/true.conf" <<'END_OF_FILE'
[language true]
file = code
run = /usr/bin/true
sample = nothing
END_OF_FILE
    cat >"$folder/languages.d/shell.conf" <<'END_OF_FILE'
[language shell]
file = code
run = /bin/sh {file}
sample = exit 0
END_OF_FILE
    [[ ! -x /usr/bin/python3 ]] || cat >"$folder/languages.d/python-pass.conf" <<'END_OF_FILE'
[language python-pass]
file = code
run = /usr/bin/python3 -I -c pass
sample = nothing
END_OF_FILE
}

write_params() {
    local who='"company":"acme","actor":"bench","purpose":"measuring"' code
    code=$(printf 'print(total + 1); %.0s' {1..40})
    printf '{%s,"language":"true","code":"","grant":{}}\n' "$who" >"$folder/true.json"
    printf '{%s,"language":"true","code":"","grant":{"limits":{%s,%s}}}\n' "$who" \
        '"wall_ms":10000,"cpu_ms":10000,"memory_bytes":268435456,"processes":64' \
        '"open_files":256,"scratch_bytes":67108864,"output_bytes":1048576' >"$folder/effective.json"
    printf '{%s,"language":"python-pass","code":"","grant":{}}\n' "$who" >"$folder/python.json"
    printf '{%s,"language":"shell","code":"exec sleep 60","grant":{"limits":{"wall_ms":60000}}}\n' \
        "$who" >"$folder/wait.json"
    printf '{%s,"language":"true","code":"%s","grant":{"network":{"mode":"allowlist","hosts":["api.example.com:443"]}}}\n' \
        "$who" "$code" >"$folder/denied.json"
}

# ---- daemons ----------------------------------------------------------------------------------------

# write_config NAME LEDGER SLOTS
write_config() {
    mkdir -p "$folder/$1"
    cat >"$folder/$1/auditrun.conf" <<END_OF_FILE
[daemon]
log_level = warning
[socket]
path = $folder/$1/socket
max_connections = 2000
[ledger]
url = $2
[journal]
directory = $folder/$1/journal
[executor namespace]
program = $build_dir/auditrun-executor-namespace
args = --languages $folder/languages.d
slots = $3
[client bench]
uid = 0
companies = *
END_OF_FILE
    mkdir -p "$folder/$1/journal"
}

# start_daemon NAME LEDGER [SLOTS]: answers on $folder/NAME/socket
start_daemon() {
    local end=$((SECONDS + 60))
    write_config "$1" "$2" "${3:-8}"
    quietly "$build_dir/auditrun" ledger init --config "$folder/$1/auditrun.conf"
    (enter_cpu_group "$1" && exec "$build_dir/auditrund" --config "$folder/$1/auditrun.conf" --foreground) \
        >"$folder/$1/log" 2>&1 </dev/null &
    daemons+=("$!")
    printf '%s' "$!" >"$folder/$1/pid"
    until "$build_dir/auditrun" status --socket "$folder/$1/socket" >/dev/null 2>&1; do
        if ! kill -0 "${daemons[-1]}" 2>/dev/null || ((SECONDS >= end)); then
            cat "$folder/$1/log" >&2
            fail "the daemon $1 does not answer"
        fi
        sleep 0.05
    done
}

daemon_pid() { cat "$folder/$1/pid"; }

# hold DAEMON CONNECTIONS WHAT...: connections that stay until release()
hold() {
    local line
    mkfifo "$folder/hold.in" "$folder/hold.out"
    "$bench/hold" "$folder/$1/socket" "${@:2}" <"$folder/hold.in" >"$folder/hold.out" &
    held+=("$!")
    exec 8>"$folder/hold.in" 9<"$folder/hold.out"
    rm "$folder/hold.in" "$folder/hold.out"
    read -r line <&9 || fail 'the daemon did not take what it was to hold'
    [[ $line == holding ]] || fail 'the daemon did not take what it was to hold'
}

release() {
    exec 8>&- 9<&-
    wait "${held[-1]}" || true
    held=()
}

# ---- PostgreSQL -------------------------------------------------------------------------------------

ledger_url() { printf 'postgres:host=%s user=postgres dbname=%s' "$folder/postgres" "$1"; }

make_ledger() { # DATABASE
    quietly psql -q -c "CREATE DATABASE $1"
    quietly "$build_dir/auditrun" ledger init --ledger "$(ledger_url "$1")"
}

# A private cluster with default durability; false when PostgreSQL is not here.
start_cluster() {
    pg_bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    if [[ -z $pg_bin || ! -x $pg_bin/initdb || ! -x $pg_bin/pgbench ]]; then
        skip 'all that is recorded to PostgreSQL: apt-get install postgresql'
        return 1
    fi
    mkdir -m 700 "$folder/postgres"
    chmod 711 "$folder"
    chown postgres "$folder/postgres"
    quietly as_postgres "$pg_bin/initdb" -D "$folder/postgres/data" -U postgres -A trust -E UTF8 --locale=C.UTF-8
    cluster=$folder/postgres/data
    quietly as_postgres "$pg_bin/pg_ctl" -D "$cluster" -w -t 60 -l "$folder/postgres/log" start \
        -o "-c listen_addresses='' -c unix_socket_directories='$folder/postgres' -c max_connections=120"
    export PGHOST=$folder/postgres PGUSER=postgres PGDATABASE=postgres
    quietly psql -q -c 'CREATE DATABASE audit'
    start_daemon postgres "$(ledger_url audit)"
}

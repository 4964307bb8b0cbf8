#!/usr/bin/env bash
# The verbs of the command line that look after a ledger, on both stores: keygen, and what it is good
# for. TAP. Daemons, ledgers and the PostgreSQL server are private ones in a temporary folder that goes
# away at the end.
# shellcheck disable=SC2317 # the helpers are called through check, wait_for and trap
set -u

# shellcheck source=../lib/cli.sh
source "${AUDITRUN_SOURCE:?}/tests/lib/cli.sh" || exit 1
daemon='' cluster='' pg_bin=''
folder=$(mktemp -d "${TMPDIR:-/tmp}/check-cli-ledger.XXXXXX") || exit 1

# PostgreSQL refuses to run as root: as root it is started as the user postgres.
as_postgres() {
    if ((EUID == 0)); then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

cleanup() {
    stop_daemon
    if [[ -n $cluster ]]; then
        as_postgres "$pg_bin/pg_ctl" -D "$cluster" -m immediate -w stop >/dev/null 2>&1
    fi
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
cd "$folder" || exit 1

fails() { ! "$@"; }

# member NAME [FILE]: of a line of JSON.
member() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$1" "${2:-out}"
}

# ---- stores and daemons ---------------------------------------------------------------------------

start_postgres() {
    pg_bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin 2>/dev/null | sort -V | tail -n 1)
    [[ -n $pg_bin && -x $pg_bin/initdb ]] || return 1
    mkdir -m 700 "$folder/postgres" || return 1
    if ((EUID == 0)); then
        chmod 711 "$folder" && chown postgres "$folder/postgres" || return 1
    fi
    as_postgres "$pg_bin/initdb" -D "$folder/postgres/data" -U postgres -A trust -E UTF8 \
        --locale=C.UTF-8 --no-sync >postgres.log 2>&1 || return 1
    cluster=$folder/postgres/data
    as_postgres "$pg_bin/pg_ctl" -D "$cluster" -w -t 60 -l "$folder/postgres/log" start \
        -o "-c listen_addresses='' -c unix_socket_directories='$folder/postgres'" >>postgres.log 2>&1
}

# new_database NAME: an empty one; its URL is in url.
new_database() {
    as_postgres "$pg_bin/createdb" -h "$folder/postgres" -U postgres "$1" || return 1
    url="postgres:host=$folder/postgres user=postgres dbname=$1"
}

sql() { as_postgres "$pg_bin/psql" -h "$folder/postgres" -U postgres -d "$1" -AtX -v ON_ERROR_STOP=1 -c "$2"; }

# configure URL: for daemons; the key is checkpoint.key.
configure() {
    cat >auditrun.conf <<END
[socket]
path = $folder/auditrun.sock
[ledger]
url = $1
checkpoint_key = $folder/checkpoint.key
[journal]
directory = $folder/journal
[executor namespace]
program = $AUDITRUN_BUILD/auditrun-executor-namespace
args = --languages $AUDITRUN_SOURCE/tests/languages.d
slots = 2
[client local]
uid = $(id -u)
companies = *
END
}

start_daemon() {
    mkdir -p journal
    "$AUDITRUN_BUILD/auditrund" --config auditrun.conf --foreground >daemon.log 2>&1 </dev/null &
    daemon=$!
    wait_for "$auditrun" status >/dev/null 2>&1
}

stop_daemon() {
    [[ -n $daemon ]] || return 0
    kill -TERM "$daemon" 2>/dev/null
    wait "$daemon"
    daemon=''
}

unset AUDITRUN_SOCKET
export AUDITRUN_CONFIG=$folder/auditrun.conf
export AUDITRUN_COMPANY=acme AUDITRUN_ACTOR=ana AUDITRUN_PURPOSE=test

# ---- keygen ---------------------------------------------------------------------------------------

check 'a key is made, and where to put it is told' \
    tells 0 out "^checkpoint_key = $folder/checkpoint.key\$" ledger keygen checkpoint.key
check 'only its owner can read it' has <(stat -c %a checkpoint.key) 600
check 'the public half is beside it' says checkpoint.key.pub 'BEGIN PUBLIC KEY'
key_id=$(sed -n 's/^key id *//p' out)
check 'the key id is the SHA-256 of the public key' has \
    <(openssl pkey -pubin -in checkpoint.key.pub -outform DER | tail -c 32 | sha256sum | cut -c 1-64) "$key_id"
cp checkpoint.key before
check 'it is never written over: 74' tells 74 err 'never written over' ledger keygen checkpoint.key
check 'and is as it was' cmp -s checkpoint.key before
check 'a folder is no file: 64' ends 64 ledger keygen folder/
: >half.pub
check 'a public half that is there: 74' tells 74 err 'half.pub' ledger keygen half
check 'and no private half then' test ! -e half
check 'a folder that is not there: 74' tells 74 err 'No such file' ledger keygen nowhere/key
check 'as JSON' ends 0 ledger keygen --json second.key
check 'with the paths' has <(member public_key) "$folder/second.key.pub"
check 'no file: 64' ends 64 ledger keygen
check 'two files: 64' ends 64 ledger keygen a b
for verb in init migrate status list events checkpoints export import retire keygen; do
    check "$verb has help with examples" tells 0 out '^Examples' ledger "$verb" --help
    check "$verb is in the manual" says "$AUDITRUN_SOURCE/man/auditrun.1" "^\.Ss auditrun ledger $verb\$"
    check "$verb is completed" says "$AUDITRUN_SOURCE/etc/completion/auditrun.bash" "[' ]$verb .*--help'"
done

# ---- init, migrate, status ------------------------------------------------------------------------

# member_is NAME WANTED: of the line of JSON in out.
member_is() { [[ $(member "$1") == "$2" ]]; }

# ready URL: the verbs that need no rows, on an empty store.
ready() {
    configure "$1"
    check "$2: migrate refuses a ledger that is not there: 2" ends 2 ledger migrate
    check "$2: init makes it" tells 0 out 'is ready (' ledger init
    check "$2: and again, without harm" tells 0 out already ledger init
    check "$2: migrate finds nothing to do" tells 0 out already ledger migrate
    check "$2: status is good" tells 0 out 'to do  *nothing' ledger status
    check "$2: and as JSON" ends 0 ledger status --json
    check "$2: with nothing to do" member_is todo '[]'
    check "$2: and no chains" member_is chains 0
    check "$2: no events either" ends 0 ledger events --json
    check "$2: none" lines 0
}

ready "sqlite:$folder/ledger.db" SQLite
check 'a ledger that is not there: 2' tells 2 err 'cannot look' ledger status --ledger sqlite:nowhere.db
check 'no such store: 64' ends 64 ledger status --ledger nonsense:x
check 'no partitions on SQLite: 64' ends 64 ledger init --partitions day
check 'no such width: 64' tells 64 err 'day, week or month' ledger init --partitions year
if start_postgres; then
    new_database ready
    configure "$url"
    check 'an empty database has something to do: 1' tells 1 out 'ledger init' ledger status
    ready "$url" PostgreSQL
    check 'partitions are made ahead' tells 0 out 'one a week, until 20' ledger status
    check 'another width' ends 0 ledger init --partitions month
    check 'is told' tells 0 out 'one a month' ledger status
    sql ready 'DROP EVENT TRIGGER auditrun_refuse_drop' >/dev/null
    check 'an event trigger that is missing: 1, and what to do' \
        tells 1 out 'auditrun_refuse_drop is missing: run auditrun ledger migrate' ledger status
    check 'migrate makes it' ends 0 ledger migrate
    check 'and all is good' ends 0 ledger status
    sql ready 'DROP EVENT TRIGGER auditrun_refuse_ddl;
        ALTER TABLE auditrun.events DISABLE TRIGGER refuse_change' >/dev/null
    check 'a trigger that was disabled: 1' \
        tells 1 out 'trigger refuse_change on auditrun.events was changed' ledger status
    check 'as JSON too' ends 1 ledger status --json
    check 'in changes' says out 'refuse_change on auditrun.events was changed'
    new_database old
    "$auditrun" ledger init --ledger "$url" >/dev/null
    sql old "DROP EVENT TRIGGER auditrun_refuse_ddl; DROP EVENT TRIGGER auditrun_refuse_drop;
        ALTER TABLE auditrun.migrations DISABLE TRIGGER ALL;
        UPDATE auditrun.migrations SET sha256 = sha256('x') WHERE version = 2" >/dev/null
    check 'migrations of another program: 1' tells 1 out 'not those of this program' ledger status --ledger "$url"
    check 'are left alone: 2' ends 2 ledger migrate --ledger "$url"
    secret="postgres:postgresql://me:geheim@127.0.0.1:1/audit"
    check 'a server that is not there: 2' ends 2 ledger status --ledger "$secret"
    check 'without the password' fails grep -q geheim out err
else
    check 'PostgreSQL # SKIP it is not installed' true
fi

# ---- events and checkpoints -----------------------------------------------------------------------

# shellcheck disable=SC2016 # the dollar is the code's
echo 'echo "${1-}"' >code.sh

# lived URL NAME: a daemon makes some rows in the ledger, which is there.
lived() {
    configure "$1"
    rm -rf journal
    start_daemon || return 1
    for i in 1 2 3; do
        "$auditrun" run --key "$2-$i" code.sh -- "$i" >/dev/null 2>>runs.err || return 1
    done
    "$auditrun" run --company beta --actor '=bob, "b"' code.sh >/dev/null 2>>runs.err || return 1
    stop_daemon
}

told() {
    check "$1: a daemon makes rows" lived "$2" "$1"
    check "$1: events are listed" tells 0 out 'started' ledger events
    check "$1: as JSON, newest first" ends 0 ledger events --json
    check "$1: the last is stopped" says <(head -n 1 out) '"kind":"stopped"'
    check "$1: of one kind" ends 0 ledger events --json --kind started
    check "$1: one started" lines 1
    writer=$(member writer)
    check "$1: its key is told" says out "$key_id"
    check "$1: of one writer" tells 0 out stopped ledger events --json --writer "$writer"
    check "$1: of another" ends 0 ledger events --json --writer 01937a5e-8c4f-7b21-9d3e-5f60718293a4
    check "$1: none" lines 0
    check "$1: none that long ago" ends 0 ledger events --json --until 2020-01-01
    check "$1: indeed" lines 0
    check "$1: the newest one" ends 0 ledger events --json --limit 1
    check "$1: is one" lines 1
    check "$1: checkpoints are printed" tells 0 out '"signature":' ledger checkpoints
    cp out checkpoints
    check "$1: of this writer" tells 0 out "$writer" ledger checkpoints --writer "$writer"
    check "$1: verify reads them" tells 0 out whole verify --checkpoints checkpoints --key checkpoint.key.pub
    check "$1: and minds the key" ends 1 verify --checkpoints checkpoints --key second.key.pub
}

check 'no such kind: 64' tells 64 err partition_retired ledger events --kind nonsense
check 'no such writer: 64' ends 64 ledger events --writer x
check 'nor for checkpoints: 64' ends 64 ledger checkpoints --writer x
told SQLite "sqlite:$folder/ledger.db"
if [[ -n $cluster ]]; then
    new_database audit
    "$auditrun" ledger init --ledger "$url" >/dev/null
    told PostgreSQL "$url"
fi

# ---- export ---------------------------------------------------------------------------------------

# count WORD FILE: lines that are that.
count() { grep -c "^{\"$1\":" "$2"; }
is() { [[ $1 == "$2" ]]; }

exported() {
    local name=$1 url=$2 full=export.$1 other=resumed.$1
    configure "$url"
    check "$name: export to a file" tells 0 out '^4 runs, ' ledger export --output "$full"
    check "$name: which is not written over: 74" tells 74 err 'there already' ledger export --output "$full"
    check "$name: all kinds of lines" is "$(count run "$full") $(count key "$full") $(count head "$full")" '4 3 1'
    check "$name: as many to standard output" ends 0 ledger export
    check "$name: the same" cmp -s out "$full"
    for cut in 0 1 50 900 2500 6000 "$(($(wc -c <"$full") - 1))"; do
        head -c "$cut" "$full" >"$other"
        check "$name: cut at $cut, it goes on" ends 0 ledger export --resume "$other"
        check "$name: with all rows, each once" cmp -s <(grep -E '^..(run|event)' "$other") \
            <(grep -E '^..(run|event)' "$full")
        check "$name: and all checkpoints" cmp -s <(grep ^..checkpoint "$other") <(grep ^..checkpoint "$full")
    done
    check "$name: a whole one has no more rows" tells 0 out '^0 runs, 0 events, 0 checkpoints, 3 keys' \
        ledger export --resume "$other"
    writer=$(sed -n 's/^{"head":{"writer":"\([^"]*\).*/\1/p' "$full" | head -n 1)
    check "$name: behind a place" ends 0 ledger export --after "$writer:2"
    check "$name: is the rest" cmp -s <(grep -E '^..(run|event)' out) <(grep -E '^..(run|event)' "$full" | tail -n +3)
    check "$name: with a filter, runs alone" ends 0 ledger export --company beta
    check "$name: one" lines 1
    check "$name: the newest" ends 0 ledger export --limit 2
    check "$name: two" lines 2
    check "$name: CSV" ends 0 ledger export --format csv
    cp out "$name.csv"
    check "$name: is what others read" python3 - "$name.csv" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
assert len(rows) == 4 and rows[3]["actor"] == '=bob, "b"' and rows[0]["company"] == "acme", rows
assert rows[0]["signal"] == "" and rows[0]["status"] == "succeeded"
END
    head -c 1500 "$name.csv" >torn.csv
    check "$name: CSV goes on too" ends 0 ledger export --format csv --resume torn.csv
    check "$name: with the same end" cmp -s torn.csv "$name.csv"
}

exported SQLite "sqlite:$folder/ledger.db"
if [[ -n $cluster ]]; then
    new_database unused
    exported PostgreSQL "${url/unused/audit}"
fi
configure "sqlite:$folder/ledger.db"
echo '{"what":1}' >strange
check 'a file of another kind: 66' tells 66 err 'line 1 is not of an export' ledger export --resume strange
check 'is left alone' has strange '{"what":1}'
check 'no such format: 64' ends 64 ledger export --format xml
check 'no such place: 64' tells 64 err WRITER:SEQ ledger export --after x:1
check 'either or: 64' ends 64 ledger export --output a --resume b
full_disk() {
    "$auditrun" ledger export >/dev/full 2>err
    (($? == 74))
}
check 'a full disk: 74' full_disk

# ---- import ---------------------------------------------------------------------------------------

# rows_equal URL URL: the same rows in both.
rows_equal() {
    "$auditrun" ledger export --ledger "$1" >one && "$auditrun" ledger export --ledger "$2" >two && cmp -s one two
}

# imported NAME FROM TO: to an empty ledger at TO.
imported() {
    local name=$1 from=$2 to=$3
    "$auditrun" ledger init --ledger "$to" >/dev/null
    "$auditrun" ledger export --ledger "$from" >whole.jsonl
    head -n 4 whole.jsonl >part.jsonl
    check "$name: a part" tells 0 out '^4 rows' ledger import --ledger "$to" part.jsonl
    check "$name: all of it" ends 0 ledger import --json --ledger "$to" whole.jsonl
    check "$name: four were there" member_is rows_there 4
    check "$name: verify is green" tells 0 out '^whole' verify --ledger "$to" --key checkpoint.key.pub
    check "$name: all is as it was" rows_equal "$from" "$to"
    check "$name: again, without harm" tells 0 out '^0 rows' ledger import --ledger "$to" whole.jsonl
    check "$name: a part that is there" tells 0 out '^0 rows' ledger import --ledger "$to" part.jsonl
}

source="sqlite:$folder/ledger.db"
imported 'SQLite to SQLite' "$source" "sqlite:$folder/copy.db"
from_pipe() { "$auditrun" ledger export | "$auditrun" ledger import --ledger "sqlite:$folder/copy.db" - >out; }
check 'from a pipe' from_pipe
if [[ -n $cluster ]]; then
    new_database grown
    imported 'SQLite to PostgreSQL' "$source" "$url"
    check 'verify in SQL is green' is "$(sql grown 'SELECT finding FROM auditrun.verify()')" ok
    check 'no row is in the default partition' is "$(sql grown 'SELECT count(*) FROM auditrun.runs_default')" 0
    check 'the keys are there' is "$(sql grown 'SELECT count(*) FROM auditrun.keys')" 3
    audit=${url/grown/audit}
    imported 'PostgreSQL to SQLite' "$audit" "sqlite:$folder/shrunk.db"
fi

# refused WHAT PATTERN SED: the export, changed, does not go into an empty ledger.
refused() {
    rm -f refused.db*
    "$auditrun" ledger init --ledger sqlite:refused.db >/dev/null
    sed "$3" whole.jsonl >changed.jsonl
    check "$1" tells 1 err "$2" ledger import --ledger sqlite:refused.db changed.jsonl
}

"$auditrun" ledger export --ledger "$source" >whole.jsonl
refused 'a row that was altered: 1' 'row 2 .*altered' '2s/"late":false/"late":true/'
refused 'a row that is missing: 1' 'missing' 3d
refused 'rows that are missing at the end: 1' 'are missing in the file' '/^..event/d;/^..run/d'
refused 'a row that comes twice: 1' 'comes twice' 3p
refused 'a signature that is wrong: 1' 'signature' '/^..checkpoint/s/"made_at":"20/"made_at":"19/'
check 'a line that is none: 66' tells 66 err 'line 1: it is not of an export' ledger import strange
check 'a file that is not there: 66' ends 66 ledger import nowhere.jsonl
check 'no file: 64' ends 64 ledger import
check 'a ledger that is not ready: 2' ends 2 ledger import --ledger sqlite:nowhere.db whole.jsonl
head -c 3000 whole.jsonl >torn.jsonl
check 'a torn line is told: 66' tells 66 err 'torn: auditrun ledger export --resume' ledger import --ledger sqlite:refused.db torn.jsonl

# ---- the end --------------------------------------------------------------------------------------

echo "1..$number"
exit $((failures > 0))

#!/usr/bin/env bash
# What `make install` puts below DESTDIR is all there and nothing else, is not overwritten where it is the
# administrator's, and is gone after `make uninstall`.
set -u
cd "${AUDITRUN_SOURCE:?}" || exit 1

work=$(mktemp -d "${TMPDIR:-/tmp}/check-install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
root=$work/root

number=0 failures=0

# expect NAME COMMAND...: one TAP line; COMMAND succeeds.
expect() {
    local name=$1
    shift
    number=$((number + 1))
    if "$@"; then
        echo "ok $number - $name"
    else
        failures=$((failures + 1))
        echo "not ok $number - $name"
    fi
}

# The build's own variables must not reach this make: it installs what is built, as it is.
goal() {
    env -u MAKEFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u CC -u CFLAGS -u SANITIZE -u T \
        make BUILD="${AUDITRUN_BUILD:?}" DESTDIR="$root" "$@" >"$work/log" 2>&1 ||
        { sed 's/^/# /' "$work/log" && return 1; }
}

has() {
    [[ -n $(find "$root" -type f -path "*$1") ]]
}

is_empty() {
    [[ -z $(find "$root" -type f) ]]
}

expect 'install' goal install
for path in /sbin/auditrund /bin/auditrun /libexec/auditrun/auditrun-executor-namespace \
    /libexec/auditrun/auditrun-executor-once /share/doc/auditrun/LICENSE \
    /systemd/system/auditrund.service /systemd/system/auditrund.socket \
    /sysusers.d/auditrun.conf /tmpfiles.d/auditrun.conf; do
    expect "$path" has "$path"
done
shopt -s nullglob
for page in man/*.[1-8]; do
    expect "$page" has "/man${page##*.}/${page##*/}"
done
expect 'no placeholder is left' bash -c "! grep -rIqE '@[a-z]+dir@' '$root'"

conf=$(find "$root" -name auditrun.conf | head -n 1)
if [[ -n $conf ]]; then
    cp "$conf" "$work/conf"
    echo '# mine' >>"$conf"
    expect 'install again' goal install
    expect "the administrator's file stays" grep -q '^# mine' "$conf"
    expect 'the new file is beside it' cmp -s "$conf.new" "$work/conf"
    mv "$work/conf" "$conf"
fi
expect 'uninstall' goal uninstall
expect 'nothing is left' is_empty

echo "1..$number"
((failures == 0))

# shellcheck shell=bash
# The peers: other ways to run a program in a sandbox, as they are installed, each started by the same
# clock as the floor. None of them decides or records anything. Debian has no package of isolate and
# nsjail: they are measured where they are found in PATH.
# Read by tests/bench/run, after host.sh.

# Name, launches by one worker and by each of several, measured in every so many rounds.
peers=(
    'bubblewrap 50 12 1'
    'isolate 50 12 1'
    'nsjail 30 8 1'
    'crun 25 6 1'
    'runc 8 3 3'
    'firejail 8 3 3'
    'runsc 3 1 6'
)

# Words that start /program/true in the peer's sandbox, in the array peer_words (and what has to stand in
# front of floor, in wrapper); false: not here.
peer_words_of() {
    local path
    peer_words=() wrapper=()
    case $1 in
    bubblewrap) path=$(type -P bwrap) || return 1 ;;
    *) path=$(type -P "$1") || return 1 ;;
    esac
    case $1 in
    bubblewrap)
        peer_words=("$path" --unshare-all --die-with-parent --new-session --ro-bind "$folder/program" /program
            --proc /proc --dev /dev --tmpfs /tmp -- /program/true)
        ;;
    isolate) peer_words=("$path" --silent "--dir=/program=$folder/program" --run -- /program/true) ;;
    nsjail)
        peer_words=("$path" -Mo -Q --user 99999 --group 99999 -R "$folder/program:/program" -T /tmp
            -- /program/true)
        ;;
    crun)
        peer_words=("$path" --cgroup-manager=disabled run -b "$folder/bundle" '{}')
        # It refuses a host that has control groups of both versions.
        # shellcheck disable=SC2016 # expanded by that shell
        ! mountpoint -q /sys/fs/cgroup/unified ||
            wrapper=(unshare --mount sh -c 'umount /sys/fs/cgroup/unified && exec "$@"' sh)
        ;;
    runc) peer_words=("$path" run -b "$folder/bundle" '{}') ;;
    firejail)
        peer_words=("$path" --quiet --noprofile --net=none --caps.drop=all --seccomp --nonewprivs --private-dev
            -- "$folder/program/true")
        ;;
    runsc)
        peer_words=("$path" --network=none --platform=ptrace --ignore-cgroups run -bundle "$folder/bundle" '{}')
        ;;
    esac
}

# A bundle for the OCI runtimes, from the runtime's own template.
make_bundle() {
    local runtime
    runtime=$(type -P crun || type -P runc || type -P runsc) || return 0
    mkdir -p "$folder/bundle/rootfs/program"
    cp "$folder/program/true" "$folder/bundle/rootfs/program/"
    (cd "$folder/bundle" && quietly "$runtime" spec)
    sed -i 's/"terminal": true/"terminal": false/; s|"sh"|"/program/true"|' "$folder/bundle/config.json"
}

# Who can be measured here goes to the array measured_peers; who cannot is said, and why.
find_peers() {
    local peer name
    local -A packages=([bubblewrap]=1 [crun]=1 [runc]=1 [firejail]=1 [runsc]=1)
    measured_peers=()
    make_bundle
    for peer in "${peers[@]}"; do
        name=${peer%% *}
        if ! peer_words_of "$name"; then
            skip "$name: ${packages[$name]+./bootstrap deps bench}${packages[$name]-Debian has no package of it}"
            continue
        fi
        if [[ $name == isolate ]]; then
            quietly "${peer_words[0]}" --init
            at_end=("${peer_words[0]}" --cleanup)
        fi
        if "${wrapper[@]}" "$bench/floor" -n 1 -- "${peer_words[@]}" >/dev/null 2>"$folder/step.log"; then
            measured_peers+=("$peer")
        else
            skip "$name does not start here: $(tr '\n' ' ' <"$folder/step.log")"
        fi
    done
    wrapper=()
}

measure_peers() { # ROUND
    local peer name alone each every
    for peer in "${measured_peers[@]}"; do
        read -r name alone each every <<<"$peer"
        (($1 % every == 1 || every == 1)) || continue
        peer_words_of "$name"
        peer "$name.1" "$alone" 1 -- "${peer_words[@]}"
        [[ $name != isolate ]] || continue # a box is for one at a time
        peer "$name.2" $((each * 2)) 2 -- "${peer_words[@]}"
        peer "$name.8" "$each" 8 -- "${peer_words[@]}"
    done
    wrapper=()
}

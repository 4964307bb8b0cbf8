# shellcheck shell=bash
# Completion for auditrun(1): verbs, options of the verb, and the fixed words that some options take.
# Options come from the verb's own --help, so that this file does not fall behind.

_auditrun_options() {
    "$1" "${@:2}" --help 2>/dev/null | grep -o -E -e '--[a-z][a-z-]*' | sort -u
}

_auditrun() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=${COMP_WORDS[1]-} words='' verb_words=()
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words='run executors status top record cancel disable enable switches ledger verify --help --version'
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi
    if [[ $verb == ledger ]] && ((COMP_CWORD == 2)); then
        mapfile -t COMPREPLY < <(compgen -W 'init migrate status list show events checkpoints export import retire keygen --help' -- "$current")
        return
    fi
    if [[ $verb == disable || $verb == enable ]] && ((COMP_CWORD == 2)); then
        mapfile -t COMPREPLY < <(compgen -W 'all company executor language' -- "$current")
        return
    fi
    case $previous in
    --partitions) words='day week month' ;;
    --format) words='json csv' ;;
    --kind)
        words='started stopped reloaded switched executor_registered key_changed gap clock_stepped
            partition_retired'
        ;;
    --network) words='none allowlist open' ;;
    --language | language) words='python javascript bash perl lua ruby c' ;;
    --status)
        words='succeeded failed timed_out limit_exceeded cancelled capability_denied unauthorized
            disabled refused provider_failed interrupted'
        ;;
    esac
    if [[ -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [[ $current == -* ]]; then
        verb_words=("$verb")
        [[ $verb != ledger ]] || verb_words+=("${COMP_WORDS[2]}")
        words=$(_auditrun_options "${COMP_WORDS[0]}" "${verb_words[@]}")
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    fi
}

complete -o bashdefault -o default -F _auditrun auditrun

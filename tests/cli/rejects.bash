# shellcheck shell=bash
# rejects COMMAND STATUS TEXT ARG... - `railgauge COMMAND ARG...` ends with STATUS, says TEXT among what it has to say
# on stderr, and prints nothing.
rejects() {
    local command=$1 code=$2 text=$3
    shift 3
    run --separate-stderr railgauge "$command" "$@"
    # shellcheck disable=SC2154 # bats sets stderr
    if [ "$status" -ne "$code" ] || [[ $stderr != *"$text"* ]]; then
        echo "exit $status, not $code, or \"$text\" is not in: $stderr"
        return 1
    fi
    [ -z "$output" ] || {
        echo "printed: $output"
        return 1
    }
}

# table.bash - the table that the benchmarks print and write: name, value, unit, target, verdict.
# shellcheck shell=bash

# table_open OUT.tsv
table_open() {
    out=$1
    printf 'name\tvalue\tunit\ttarget\tverdict\n' >"$out"
    printf '  %-52s %10s %-6s %10s  %s\n' what value unit target verdict
}

# line NAME VALUE UNIT TARGET VERDICT
line() {
    printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$out"
    printf '  %-52s %10s %-6s %10s  %s\n' "$@"
}

# row NAME VALUE UNIT [TARGET]: TARGET is "<= X" or ">= X".
row() {
    local verdict=- op limit
    if [ -n "${4-}" ]; then
        read -r op limit <<<"$4"
        verdict=$(awk -v v="$2" -v op="$op" -v t="$limit" \
            'BEGIN {print (op == "<=" ? v <= t : v >= t) ? "met" : "missed"}')
    fi
    line "$1" "$2" "$3" "${4:--}" "$verdict"
}

median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
calc() { awk "BEGIN {printf \"%.4g\", $*}"; }

# Ahead of whatever else the machine does, where that is allowed: ranks wait by sched_yield.
ahead=()
! chrt -r 1 true 2>/dev/null || ahead=(chrt -r 1)

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() {
    "${ahead[@]}" mpirun -n "$1" --oversubscribe --mca mpi_yield_when_idle 1 "${@:2}"
}

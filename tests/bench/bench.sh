#!/bin/bash
# bench.sh - what `make bench` prints: ratios and times measured in one run, with their targets.
#
#   RG_BUILD=build tests/bench/bench.sh [OUT.tsv]
#
# Compared programs run in turns, so that both see the same machine; a ratio is the median of the turns'
# ratios.  The table's values also go to OUT.tsv (default RG_BUILD/bench.tsv).  A missed target is printed
# as such and is no failure: the exit code says only whether everything could be measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build=${RG_BUILD:-build}
out=${1:-$build/bench.tsv}
[ -x "$build/tests/bench/pingpong" ] || {
    echo "bench.sh: $build/tests/bench/pingpong is not built: make bench builds and runs it" >&2
    exit 1
}
turns=7
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Ahead of whatever else the machine does, where that is allowed: ranks wait by sched_yield.
ahead=()
! chrt -r 1 true 2>/dev/null || ahead=(chrt -r 1)

ranks() {
    "${ahead[@]}" mpirun -n "$1" --oversubscribe --mca mpi_yield_when_idle 1 "${@:2}"
}
median() { sort -g | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
calc() { awk "BEGIN {printf \"%.4g\", $*}"; }

# row NAME VALUE UNIT [TARGET]: TARGET is "<= X" or ">= X".
row() {
    local verdict=- op limit
    if [ -n "${4-}" ]; then
        read -r op limit <<<"$4"
        verdict=$(awk -v v="$2" -v op="$op" -v t="$limit" \
            'BEGIN {print (op == "<=" ? v <= t : v >= t) ? "met" : "missed"}')
    fi
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:--}" "$verdict" >>"$out"
    printf '  %-52s %10s %-6s %10s  %s\n' "$1" "$2" "$3" "${4:--}" "$verdict"
}

# plan OP BYTES: a plan of one size of one pair.
plan() {
    printf '# railgauge-plan 1\nround\tstage\top\tbytes_from\tbytes_to\tfactor\tepochs\tgroups\n'
    printf '0\tisolated\t%s\t%s\t%s\t2\t0,1,2,3,4\t0>1\n' "$1" "$2" "$2"
}

# What one run of the probe finds for the plan: the median of column "sec" over its epochs.
probe_once() {
    rm -f "$work/points.tsv"
    ranks 2 "$build/railgauge-probe" probe -t mpi --topology "$work/topology.json" \
        --plan "$work/plan.tsv" --no-retest -o "$work/points.tsv" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        return 1
    }
    awk -F'\t' '/^#/ {next} !at {for (i = 1; i <= NF; i++) if ($i == "sec") at = i; next} {print $at}' \
        "$work/points.tsv" | median
}

# compare KIND OP BYTES BLOCKS LOOPS: one line a turn in the file turns, seconds of the bare loop and ours.
compare() {
    local t bare
    : >"$work/turns"
    plan "$2" "$3" >"$work/plan.tsv"
    for ((t = 0; t < turns; t++)); do
        bare=$(ranks 2 "$build/tests/bench/pingpong" "$1" "$3" "$4" "$5")
        echo "$bare $(probe_once)" >>"$work/turns"
    done
}

# The median over the turns of an expression of $1, the bare loop's seconds, and $2, ours.
over_turns() { awk "{printf \"%.4g\\n\", $1}" "$work/turns" | median; }

bench_pair() {
    ranks 2 "$build/railgauge-probe" discover --quiet -o "$work/topology.json"
    # shellcheck disable=SC2016 # awk's fields
    {
        compare latency pair_latency 8 200 100
        row "pair latency, 8 B, bare loop" "$(over_turns '$1 * 1e6')" us
        row "pair latency, ours / bare" "$(over_turns '$2 / $1')" x "<= 1.05"
        compare bandwidth pair_bw 1048576 100 4
        row "pair bandwidth, 1 MiB, bare loop" "$(over_turns '1048576 / $1 / 1e9')" GB/s
        row "pair bandwidth, ours / bare" "$(over_turns '$1 / $2')" x ">= 0.98"
    }
}

bench_matrix() {
    local n from to pairs
    for n in 4 8; do
        rm -f "$work"/*
        ranks "$n" "$build/railgauge-probe" discover --quiet -o "$work/topology.json"
        from=$(date +%s.%N)
        ranks "$n" "$build/railgauge-probe" probe -t mpi --topology "$work/topology.json" \
            --op pair_latency,pair_bw --pairs isolated -o "$work/points.tsv" >"$work/log" 2>&1 || {
            cat "$work/log" >&2
            return 1
        }
        to=$(date +%s.%N)
        pairs=$((n * (n - 1)))
        row "full pair matrix, $n ranks ($pairs pairs, both ways)" "$(calc "$to - $from")" s
    done
}

bench_stop_rule() {
    ranks 2 "$build/tests/bench/stop_rule" >"$work/stop_rule.tsv"
    sed 1d "$work/stop_rule.tsv" | cut -f4 >"$work/error"
    row "stop rule, median error against 20x the samples" \
        "$(calc "100 * $(median <"$work/error")")" %
    sed 1d "$work/stop_rule.tsv" | awk -F'\t' '{print $5 / $6}' >"$work/share"
    row "stop rule, median time / 1,000 fixed samples" "$(calc "$(median <"$work/share")")" x
}

bench_lookup() {
    local name value
    "$build/tests/bench/lookup" >"$work/lookup"
    while read -r name value; do
        case $name in
            open_s) row "100,000 endpoints: open" "$value" s "<= 0.3" ;;
            queries_per_s) row "100,000 endpoints: pairs asked, one core" "$(calc "$value / 1e6")" M/s ">= 20" ;;
            file_bytes) row "100,000 endpoints: file" "$(calc "$value / 1e6")" MB "<= 10" ;;
        esac
    done <"$work/lookup"
}

bench_nodes() {
    local name value
    "$build/tests/bench/nodes" >"$work/nodes"
    while read -r name value; do
        case $name in
            *_cost_8_ms | *_cost_128_ms) row "nodes, ${name%_ms}" "$value" ms "<= 1" ;;
            *_cost_1024_ms) row "nodes, ${name%_ms}" "$value" ms "<= 10" ;;
            *_8_of_64_ms) row "nodes, ${name%_ms}" "$value" ms "<= 100" ;;
            *) row "nodes, ${name%_ms}" "$value" ms ;;
        esac
    done <"$work/nodes"
}

bench_search() {
    local name value
    "${ahead[@]}" "$build/tests/bench/search" >"$work/search"
    while read -r name value; do
        case $name in
            *_wall_s) row "search, 8,192 GPUs, ${name%_wall_s}" "$value" s "<= 1" ;;
            *_evaluations) row "search, ${name%_evaluations}: layouts and recipes" "$value" - ;;
            *_fit) row "search, ${name%_fit}: of them fit" "$value" - ;;
            *_per_s) row "search, ${name%_per_s}: whole evaluations, one core" "$(calc "$value / 1e6")" M/s ">= 1" ;;
        esac
    done <"$work/search"
}

printf 'name\tvalue\tunit\ttarget\tverdict\n' >"$out"
printf '  %-52s %10s %-6s %10s  %s\n' what value unit target verdict
bench_pair
bench_matrix
bench_stop_rule
bench_lookup
bench_nodes
bench_search
echo "  values: $out"

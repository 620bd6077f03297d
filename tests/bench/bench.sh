#!/bin/bash
# bench.sh - what takes how long: a pair matrix, the stop rule, look-ups, node selection, the search.
#
#   RG_BUILD=build tests/bench/bench.sh [OUT.tsv]
#
# The table's values also go to OUT.tsv (default RG_BUILD/bench.tsv).  Times of one machine are no failure on
# another: a missed target is printed as such, and the exit code says only whether everything could be
# measured.  Ratios, which hold everywhere, are in pair.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/bench/table.bash

build=${RG_BUILD:-build}
out=${1:-$build/bench.tsv}
[ -x "$build/tests/bench/stop_rule" ] || {
    echo "bench.sh: $build/tests/bench/stop_rule is not built: make bench builds and runs it" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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
            queries_per_s) row "100,000 endpoints: a pair" "$(calc "1e9 / $value")" ns "<= 12" ;;
            group_members_s) row "100,000 endpoints: a group of 8,192 by its members" "$(calc "1e3 * $value")" ms ;;
            group_resolved_s) row "100,000 endpoints: the same, resolved" "$(calc "1e9 * $value")" ns "<= 100" ;;
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

table_open "$out"
bench_matrix
bench_stop_rule
bench_lookup
bench_nodes
bench_search
echo "  values: $out"

#!/bin/bash
# bench.sh - what takes how long: pair matrices, campaigns, the stop rule, look-ups, placement, the search.
#
#   RG_BUILD=build tests/bench/bench.sh [OUT.tsv]
#
# Values also go to OUT.tsv (default RG_BUILD/bench.tsv), and with JSON=FILE as a line to that file.  Each is measured in
# TURNS turns; the exit code is 1 where a goal is missed in all of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tests/bench/table.bash

build=$(realpath "${RG_BUILD:-build}")
out=${1:-$build/bench.tsv}
[ -x "$build/tests/bench/stop_rule" ] || {
    echo "bench.sh: $build/tests/bench/stop_rule is not built: make bench builds and runs it" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bench_matrix() {
    local n
    for n in 4 8; do
        ranks "$n" "$build/railgauge-probe" discover --quiet -o "$work/topology.json"
        row "full pair matrix, $n ranks ($((n * (n - 1))) pairs, both ways)" "$(seconds "$n" "$build/railgauge-probe" probe -t mpi \
            --topology "$work/topology.json" --op pair_latency,pair_bw --pairs isolated -o "$work/points.tsv")" s
    done
}

# seconds N PROGRAM... - of N ranks, with starting and ending them
seconds() {
    local from=$EPOCHREALTIME
    rm -f "$work/points.tsv"
    ranks "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2 && return 1; }
    calc "$EPOCHREALTIME - $from"
}

# The same pairs at a glance, beside peers that are on PATH, turn by turn.
bench_quick() {
    local ours='' peer theirs
    local -A words=([mpilinktest]='-s 524288 -i 10 -I 2 -Z 4' [mpiGraph]='1048576 10 10')
    for peer in mpilinktest mpiGraph; do
        command -v "$peer" >/dev/null || continue
        ours='' theirs=''
        for _ in 1 2 3 4 5; do
            ours+="$(seconds 8 "$build/railgauge-probe" probe --quick -o "$work/points.tsv") "
            # shellcheck disable=SC2086 # words
            theirs+="$(cd "$work" && seconds 8 "$peer" ${words[$peer]}) "
        done
        row "quick pair matrix, 8 ranks" "$ours" s "<= 1" "$peer" "$theirs"
    done
    [ -n "$ours" ] || row "quick pair matrix, 8 ranks" "$(seconds 8 "$build/railgauge-probe" probe --quick -o "$work/points.tsv")" s
}

# What `railgauge run` does when nothing is asked of it but 8 ranks: elapsed, what of the probe's time are samples, and how
# far off the estimate was that stood there before its first round.
bench_default() {
    local turn from walls='' samples='' off=''
    for ((turn = 1; turn <= turns; turn++)); do
        rm -rf "$work/default"
        from=$EPOCHREALTIME
        "${ahead[@]}" "$build/railgauge" run -t mpi --ranks 8 --no-plots -o "$work/default" >"$work/log" 2>&1 || [ $? = 1 ] # a slow part
        walls+="$(calc "$EPOCHREALTIME - $from") "
        read -r -a took < <(jq -r '.measured[0] | [100 * .samples_seconds / .took_seconds,
            100 * (.estimated_seconds / .took_seconds - 1 | fabs)] | @tsv' "$work/default/campaign.json")
        samples+="$(calc "${took[0]}") " off+="$(calc "${took[1]}") "
    done
    row "default run, 8 ranks" "$walls" s "<= 15"
    row "default run: samples in the probe's time" "$samples" % ">= 70"
    row "default run: the estimate is off by" "$off" % "<= 20"
}

bench_stop_rule() {
    ranks 2 "$build/tests/bench/stop_rule" >"$work/stop_rule.tsv"
    sed 1d "$work/stop_rule.tsv" | cut -f4 >"$work/error"
    row "stop rule, median error against 20x the samples" \
        "$(calc "100 * $(median <"$work/error")")" %
    sed 1d "$work/stop_rule.tsv" | awk -F'\t' '{print $5 / $6}' >"$work/share"
    row "stop rule, median time / 1,000 fixed samples" "$(calc "$(median <"$work/share")")" x
}

# program|key|factor|unit|goal|name: what a program prints as "key value", and what that is called; a key may be a pattern,
# and stands for the * of the name.
figures=(
    "lookup|open_s|1e3|ms|<= 50|100,008 endpoints: open"
    "lookup|pair_s|1e9|ns|<= 12|100,008 endpoints: a pair"
    "lookup|dependent_s|1e9|ns||100,008 endpoints: a pair that waits for the last answer"
    "lookup|cold_s|1e9|ns||100,008 endpoints: a pair with cold caches"
    "lookup|hostile_open_s|1e3|ms|<= 60|exceptions of every kind, one in 20 endpoints: open"
    "lookup|hostile_pair_s|1e9|ns|<= 25|exceptions of every kind: a pair"
    "lookup|hostile_dependent_s|1e9|ns||exceptions of every kind: a pair that waits for the last answer"
    "lookup|hostile_cold_s|1e9|ns||exceptions of every kind: a pair with cold caches"
    "lookup|group_members_s|1e3|ms||100,008 endpoints: a group of 8,192 by its members"
    "lookup|group_resolved_s|1e9|ns|<= 100|100,008 endpoints: the same, resolved"
    "lookup|group_range_s|1e6|us|<= 1|100,008 endpoints: the same, as a range"
    "lookup|group_range_reduce_s|1e6|us|<= 1|100,008 endpoints: an all_reduce of 8,192 as a range"
    "lookup|group_range_growth|1|x|<= 2|100,008 endpoints: a range of 65,536 / of 8 ranks"
    "lookup|rank_s|1|s|<= 1|100,008 endpoints: 10,000 lists of 128 nodes, two cores"
    "lookup|swap_s|1e6|us|<= 30|100,008 endpoints: one of 128 nodes swapped"
    "lookup|file_bytes|1e-6|MB|<= 10|100,008 endpoints: file"
    "nodes|*_cost_8_ms|1|ms|<= 1|price of 8 nodes, *"
    "nodes|*_cost_128_ms|1|ms|<= 1|price of 128 nodes, *"
    "nodes|*_cost_1024_ms|1|ms|<= 10|price of 1,024 nodes, *"
    "nodes|*_best8_8_of_64_ms|1|ms|<= 100|best 8 of 64 nodes, *"
    "nodes|*_best8_32_of_64_ms|1|ms||best 32 of 64 nodes, *"
    "nodes|*_best8_128_of_1152_ms|1|ms||best 128 of 1,152 nodes, *"
    "search|search_8192_wall_s|1|s|<= 1|search, 8,192 GPUs: the slowest of all models"
    "search|search_8192_cpu_s|1|s||search, 8,192 GPUs: the same, all cores together"
    "search|search_65536_wall_s|1|s|<= 5|search, 65,536 GPUs: the slowest of three models"
    "search|search_65536_cpu_s|1|s||search, 65,536 GPUs: the same, all cores together"
    "search|*_evaluations|1|-||search, *: layouts and recipes"
    "place|8192_s|1|s|<= 0.1|placing 8,192 ranks"
    "place|65536_s|1|s|<= 1|placing 65,536 ranks"
    "place|*_of_default|1|x|<= 0.6|placed * ranks: step / step as listed"
    "place|bound_median|1|x|<= 1.05|placed / bound, 20 instances, median"
    "place|bound_worst|1|x||placed / bound, 20 instances, worst"
    "place|*_median|1|x|<= 1|placed / *, 20 instances, median"
    "place|*_worst|1|x|<= 1|placed / *, 20 instances, worst"
    "search|*_per_s|1e-6|M/s|>= 1|search, *: whole evaluations, one core"
)

# measured PROGRAM: its figures.
measured() {
    local turn key figure program pattern factor unit goal name stem
    for ((turn = 1; turn <= turns; turn++)); do
        "${ahead[@]}" "$build/tests/bench/$1" >"$work/$1.$turn"
    done
    while read -r key _; do
        for figure in "${figures[@]}"; do
            IFS='|' read -r program pattern factor unit goal name <<<"$figure"
            # shellcheck disable=SC2053 # a pattern
            [[ $program == "$1" && $key == $pattern ]] || continue
            stem=${key%"${pattern#\*}"}
            row "${name/\*/$stem}" "$(awk -v k="$key" -v f="$factor" '$1 == k {printf "%.4g ", f * $2}' "$work/$1".*)" \
                "$unit" "$goal"
            break
        done
    done <"$work/$1.1"
}

# The demonstration of the README, as it stands there.
bench_demo() {
    local turn command from walls=''
    command=$(sed -n 's/^    \(railgauge run --transport sim .* -o demo\).*/\1/p' README.md)
    for ((turn = 1; turn <= turns; turn++)); do
        rm -rf "$work/demo"
        from=$EPOCHREALTIME
        (cd "$work" && PATH=$build:$PATH && $command >log 2>&1) || [ $? = 1 ] # a part is slow
        walls+="$(calc "$EPOCHREALTIME - $from") "
    done
    row "README's demonstration, 576 GPUs" "$walls" s "<= 1.5"
}

# used PROGRAM... - CPU seconds, and the most memory in MB that it held
used() {
    timeout 900 python3 -c 'import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
code in (0, 1) or sys.exit(code)
print(round(used.ru_utime + used.ru_stime, 3), used.ru_maxrss / 1000)' "$@"
}

# exponent COLUMN <<<"RACKS CPU MB" lines - of growth from 128 racks on, by least squares of logarithms; what the
# smallest costs, which is starting, is taken off
exponent() {
    awk -v c="$1" 'NR == 1 { base = $c } $1 >= 128 && $c > base { x = log($1); y = log($c - base); n++; sx += x; sy += y; sxx += x * x; sxy += x * y }
        END { printf "%.3g ", (n > 1 ? (n * sxy - sx * sy) / (n * sxx - sx * sx) : 0) }'
}

# How commands grow from 144 to 100,008 GPUs: NAME|CPU GOAL|MB GOAL|WORDS, where SIZE are racks and DIR a campaign.
bench_growth() {
    local name seconds megabytes words racks turn lines cpu peak cpus peaks times sizes
    for racks in 2 8 32 128 512 1389; do
        "$build/railgauge" run -t sim --fabric gb200-nvl72 --racks "$racks" --no-verdict --no-plots -o "$work/grown$racks" >/dev/null 2>&1
    done
    while IFS='|' read -r name seconds megabytes words; do
        cpus='' peaks='' times='' sizes=''
        for ((turn = 1; turn <= turns; turn++)); do
            lines=''
            for racks in 2 8 32 128 512 1389; do
                # shellcheck disable=SC2046,SC2086 # words
                lines+="$racks $(used "$build/railgauge" $(sed "s|SIZE|$racks|g; s|DIR|$work/grown$racks|g" <<<"$words"))"$'\n'
            done
            read -r _ cpu peak < <(tail -n 2 <<<"$lines")
            cpus+="$cpu " peaks+="$peak "
            times+=$(exponent 2 <<<"${lines%$'\n'}") sizes+=$(exponent 3 <<<"${lines%$'\n'}")
        done
        row "100,008 endpoints: $name, CPU" "$cpus" s "<= $seconds"
        row "100,008 endpoints: $name, peak" "$peaks" MB "<= $megabytes"
        row "growth of $name, CPU" "$times" exponent "<= 1.15"
        row "growth of $name, memory" "$sizes" exponent "<= 1.15"
    done <<END
plan|2|400|plan DIR/topology.json --dry-run
plan --quick|2|400|plan DIR/topology.json --dry-run --quick
export slurm-yaml|1|400|export --format slurm-yaml --fabric gb200-nvl72 --racks SIZE -o $work/x
export slurm-tree|1|400|export --format slurm-tree --fabric gb200-nvl72 --racks SIZE -o $work/x
export slurm-block|1|400|export --format slurm-block --fabric gb200-nvl72 --racks SIZE -o $work/x
report|10|400|report DIR -q -o $work/x
compare|10|400|compare DIR DIR
declared|10|400|declared DIR
END
    rm -rf "$work"/grown*
}

# A simulated campaign from plan to pictures: CPU seconds, and the most memory that one of its programs held.
bench_scale() {
    local racks name seconds megabytes turn cpu peak from cpus peaks walls
    while IFS='|' read -r racks name seconds megabytes; do
        cpus='' peaks='' walls=''
        for ((turn = 1; turn <= turns; turn++)); do
            rm -rf "$work/scale"
            read -r cpu peak < <(used "$build/railgauge" run -t sim --fabric gb200-nvl72 --racks "$racks" --no-verdict \
                -o "$work/scale")
            cpus+="$cpu " peaks+="$peak "
            from=$EPOCHREALTIME
            "$build/railgauge" plot "$work/scale" >/dev/null
            walls+="$(calc "$EPOCHREALTIME - $from") "
        done
        row "$name endpoints: run, CPU" "$cpus" s "<= $seconds"
        row "$name endpoints: peak" "$peaks" MB "<= $megabytes"
        row "$name endpoints: pictures alone" "$walls" s "<= 5"
    done <<<'512|36,864|8|300
1389|100,008|20|600'
}

turns=${TURNS:-3}
table_open "$out"
bench_matrix
bench_quick
bench_default
bench_demo
bench_scale
bench_growth
bench_stop_rule
for program in lookup nodes place search; do measured $program; done
table_close

#!/bin/bash
# run.sh - what only a machine with a GPU can show, in one call of at most 10 minutes.
#
#   RG_BUILD=build tests/gpu/run.sh [--page FILE] [--fake]
#
# TAP on standard output; figures with their targets go to RG_BUILD/gpu/results.md, and to --page FILE
# when the GPU is a real one, after every check: who is cut off has those that were done.  A missed
# target is printed as such and is no failure: not ok means that something could not be measured or was
# wrong.  What would begin after RG_GPU_SECONDS (560) is skipped, and what runs then is ended.  Without a
# GPU everything is skipped with the reason.
# --fake runs the same script on the libraries of tests/fake, to test the script itself: its figures
# say nothing, and no page is written.  On a bare machine tests/gpu/carry.sh brings what is missing.
# shellcheck disable=SC2317 # the functions of the checks are called by their names
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

fake='' page='' command="tests/gpu/run.sh $*"
while [ $# -gt 0 ]; do
    case $1 in
    --fake) fake=1 ;;
    --page) page=${2:?} && shift ;;
    *) sed -n '2,4s/^# \?//p' "$0" && exit 64 ;;
    esac
    shift
done
build=${RG_BUILD:-build} budget=${RG_GPU_SECONDS:-560}
[ -z "$fake" ] || budget=${RG_GPU_SECONDS:-3600}
out=$build/gpu${fake:+-fake}
rm -rf "$out" && mkdir -p "$out" || exit 74
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PATH="$PWD/$build:$PATH"
[ "${build#/}" = "$build" ] || PATH="$build:$PATH"
# shellcheck source=/dev/null
[ -n "$fake" ] || [ ! -r "$build/carry/env.sh" ] || . "$build/carry/env.sh"

# The largest message, iterations of a loop, turns, shared ranks and their largest message, faults.
most=1G loops=50 turns=5 many='2 4 8' top=4M faults='kill stop spin'
if [ -n "$fake" ]; then
    most=1M loops=10 turns=1 many='2 4' top=64K faults=kill
    export LD_LIBRARY_PATH=${RG_BUILD:-$PWD/build}/fake FAKE_GPU=$PWD/$out/gpus
    [ "${out#/}" = "$out" ] || FAKE_GPU=$out/gpus
    echo 'devices 1' >"$FAKE_GPU"
fi
probe=railgauge-probe loop=$build/tests/gpu/loop
quick=(-w 2 --epochs 1 --no-retest)

left() { echo $((budget > SECONDS ? budget - SECONDS : 0)); }
limited() { # COMMAND... - ended after LIMIT seconds, and when no time is left
    local limit=${LIMIT:-120} rest
    rest=$(left)
    timeout -k 5 "$((limit < rest ? limit : rest + 1))" "$@"
}
ranks() {
    limited mpirun -n "$1" --oversubscribe --bind-to none --mca btl vader,self \
        --mca mpi_yield_when_idle 1 "${@:2}"
}
shared() { # RANKS OUT WORD... - the probe on one GPU
    rm -rf "${out:?}/$2" && mkdir "$out/$2" &&
        ranks "$1" "$probe" probe -t nccl --share-gpu -o "$out/$2/points.tsv" "${quick[@]}" "${@:3}"
}
column() { # NAME FILE - the cells of one column
    awk -F'\t' -v name="$1" '/^#/ { next } !c { for (i = 1; i <= NF; i++) if ($i == name) c = i; next }
        { print $c }' "$2"
}
columns() { paste <(column "$1" "$3") <(column "$2" "$3"); }
median() { sort -g | awk '{v[NR] = $1} END {if (NR) print v[int((NR + 1) / 2)]}'; }
seconds() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(seconds)" 'BEGIN {printf "%.2f", b - a}'; }

# row WHAT VALUE UNIT [TARGET]: TARGET is "<= X" or ">= X"; what a fake measures is not judged.
row() {
    local verdict=- op limit
    if [ -n "${4-}" ] && [ -z "$fake" ]; then
        read -r op limit <<<"$4"
        verdict=$(awk -v v="$2" -v op="$op" -v t="$limit" \
            'BEGIN {print (op == "<=" ? v <= t : v >= t) ? "met" : "missed"}')
    fi
    echo "| $1 | $2 $3 | ${4:-} | $verdict |" >>"$out/rows"
    echo "# $1: $2 $3${4:+ (asked: $4, $verdict)}"
}

tests=0 failed=0
# check NAME FUNCTION... - one line of TAP; a function that returns 77 has put its reason into $why.
check() {
    local rc=77
    tests=$((tests + 1)) why="no time is left of $budget s"
    : >"$out/log"
    [ "$(left)" -lt 10 ] || { why='' && "${@:2}" >"$out/log" 2>&1; rc=$?; }
    grep '^# ' "$out/log"
    if [ $rc = 77 ]; then
        echo "ok $tests - $1 # SKIP $why"
    elif [ $rc = 0 ]; then
        echo "ok $tests - $1"
    else
        failed=$((failed + 1))
        echo "not ok $tests - $1"
        grep -v '^# ' "$out/log" | tail -n 15 | sed 's/^/#   /'
    fi
    page
}
page() { # what is known so far
    {
        echo "# What was measured on a GPU${fake:+ (FAKE: not on a GPU)}"
        echo
        echo "Made by \`$command\` on $(date -u +%Y-%m-%d), version $(railgauge --version | head -n 1)."
        echo "${facts#\# }."
        [ -n "$fake" ] || ! command -v nvidia-smi >/dev/null ||
            echo "Kernel driver $(nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)."
        echo
        echo '| what | figure | asked | |'
        echo '|---|---|---|---|'
        cat "$out/rows" 2>/dev/null
    } >"$out/results.md"
    [ -n "$fake" ] || [ -z "$page" ] || cp "$out/results.md" "$page"
}
skip() { why=$1; return 77; }

single() {
    local op
    for op in all_reduce all_gather broadcast reduce_scatter; do
        limited "$loop" "$op" 1 "$loops" 1K 1M "$most" >"$out/single" || return 1
        [ "$(grep -vc '^#' "$out/single")" = 3 ] || return 1
        row "$op of $most, one rank" "$(awk -F'\t' 'END {printf "%.0f", $3 / $4 / 1e9}' "$out/single")" GB/s
    done
}

collectives=all_reduce,all_gather,reduce_scatter,broadcast,all_to_all,sendrecv
shared_ranks() {
    local n
    for n in $many; do
        shared "$n" "shared$n" --op "$collectives" -b 1K -e "$top" -f 8 -n 5 || return 1
        [ "$(column op "$out/shared$n/points.tsv" | sort -u | wc -l)" = 6 ] || return 1
        [ "$(column check "$out/shared$n/points.tsv" | sort -u)" = ok ] || return 1
        row "all_reduce of $top, $n ranks on the GPU" "$(awk -F'\t' -v OFMT=%.3g \
            '$5 == "all_reduce" {t = $12} END {print t * 1e3}' "$out/shared$n/points.tsv")" ms
    done
}

corruption() {
    RAILGAUGE_FLIP=all_reduce:1:77:3 shared 2 flip --op all_reduce -b 4K -e 4K -n 1
    [ "$(column check "$out/flip/points.tsv" | sort -u)" != ok ] &&
        column note "$out/flip/points.tsv" | grep 'rank 1.*byte 77 '
}

graphs() {
    shared 2 events --op all_reduce -b 1K -e 64K -f 8 -n "$loops" &&
        shared 2 graph --graph --op all_reduce -b 1K -e 64K -f 8 -n "$loops" || return 1
    [ "$(column check "$out/graph/points.tsv" | sort -u)" = ok ] || return 1
    paste <(columns bytes sec "$out/events/points.tsv") <(column sec "$out/graph/points.tsv") >"$out/pairs"
    limited "$loop" --graph all_reduce 2 "$loops" 1K 8K 64K >"$out/bare" || return 1
    while read -r bytes events graph; do
        row "CUDA graphs against launches, all_reduce of $bytes bytes, time" \
            "$(awk "BEGIN {printf \"%.3f\", $graph / $events}")" ''
        row "graphs of all_reduce of $bytes bytes, ours against the bare loop's, time" \
            "$(awk -F'\t' -v b="$bytes" -v ours="$graph" '$3 == b {printf "%.3f", ours / $4}' "$out/bare")" ''
    done <"$out/pairs"
}

# Each operation in the next place of buffers of the largest size, and all in one place.
places() {
    local how=(--op "all_reduce,all_gather,reduce_scatter,all_to_all" -b 4K -e "$top" -f 32 -n "$loops")
    shared 2 turns "${how[@]}" && shared 2 same --same-buffer "${how[@]}" || return 1
    [ "$(cat <(column check "$out/turns/points.tsv") <(column check "$out/same/points.tsv") | sort -u)" = ok ] || return 1
    paste <(columns op bytes "$out/turns/points.tsv") <(columns ranks sec "$out/turns/points.tsv") <(column sec "$out/same/points.tsv") |
        awk '$1 == "all_reduce" {print $2, $4 / $5}' >"$out/pairs"
    [ -s "$out/pairs" ] || return 1
    while read -r bytes ratio; do
        row "a next place against one place, all_reduce of $bytes bytes, time" "$(printf %.3f "$ratio")" ''
    done <"$out/pairs"
}

# What our transport measures against the bare loop, in turns, each size by the median of its ratios.
yardstick() {
    local t size sizes=(1024 65536 524288)
    : >"$out/ratios"
    for ((t = 0; t < turns; t++)); do
        limited "$loop" all_reduce 2 "$loops" "${sizes[@]}" >"$out/bare" &&
            shared 2 yard --op all_reduce -b 1K -e 512K -f 8 -n "$loops" || return 1
        for size in "${sizes[@]}"; do
            echo "$size $(awk -F'\t' -v b="$size" '$3 == b {print $4}' "$out/bare") $(
                columns bytes sec "$out/yard/points.tsv" | awk -v b="$size" '$1 == b {print $2}')"
        done >>"$out/ratios"
    done
    for size in "${sizes[@]}"; do
        t=$(awk -v b="$size" '$1 == b && $2 > 0 && $3 > 0 {printf "%.4f\n", $3 / $2}' "$out/ratios" | median)
        [ -n "$t" ] || return 1
        row "all_reduce of $size bytes, 2 shared ranks, ours against the bare loop, off by" \
            "$(awk "BEGIN {d = $t - 1; printf \"%.1f\", 100 * (d < 0 ? -d : d)}")" % '<= 3'
    done
}

compute() {
    knows --compute || { skip "railgauge-probe has no --compute"; return; }
    local small=()
    [ -z "$fake" ] || small=(--device-bytes 1M --gemm "bf16:512x256x128,bf16:256x256x256,fp8:512x256x128")
    LIMIT=240 ranks 1 "$probe" probe --compute "${small[@]}" -o "$out/compute.tsv" || return 1
    # Products: of each type the slowest, the middle and the fastest shape.
    awk -F'\t' '/^#/ {next} !at["kind"] {for (i = 1; i <= NF; i++) at[$i] = i; next}
        {v = $at["value"]; kind = $at["kind"]; limit = $at["limit"]}
        v !~ /^[0-9]/ {next}
        kind == "gemm" {print "gemm", $at["dtype"], v | "sort -k2,2 -k3,3g"; next}
        kind == "load" {printf "a load that waits for the one before, from memory\t%.0f\tns\n", 1e9 * v; next}
        limit > 0 {
            printf "%s, of what the hardware allows\t%.1f\t%%", kind, 100 * v / limit
            print kind ~ /^(hbm_.*|check|h2d|d2h)$/ ? "\t>= 80" : ""}' "$out/compute.tsv" |
        awk '$1 != "gemm" {print; next} {rate[$2, ++n[$2]] = $3 / 1e12}
            END {for (t in n) printf "products of %s (%d shapes): slowest, median, fastest\t%.4g, %.4g, %.4g\tTFLOP/s\n",
                t, n[t], rate[t, 1], rate[t, int((n[t] + 1) / 2)], rate[t, n[t]]}' >"$out/figures"
    [ -s "$out/figures" ] || return 1
    while IFS=$'\t' read -r what figure unit target; do
        row "$what" "$figure" "$unit" "$target"
    done <"$out/figures"
}

# A rank that is killed, and one that stops: how much longer the run takes than one without a fault.
verdicts() {
    local begin whole kind
    ! RAILGAUGE_FAULT=none shared 2 none --op all_reduce -b 1K -e 1K -n 1 ||
        { skip "railgauge-probe knows no RAILGAUGE_FAULT"; return; }
    begin=$(seconds)
    shared 2 whole --op all_reduce -b 1K -e 4K -n 5 || return 1
    whole=$(since "$begin")
    for kind in $faults; do
        begin=$(seconds)
        RAILGAUGE_FAULT=$kind:1:2 LIMIT=60 shared 2 "$kind" --op all_reduce -b 1K -e 4K -n 5 && return 1
        row "a rank with fault $kind: the run is over after" \
            "$(awk -v t="$(since "$begin")" -v w="$whole" 'BEGIN {printf "%.1f", (t > w ? t - w : 0)}')" s '<= 10'
        [[ $(tail -n 1 "$out/rows") =~ \|\ [0-9.]+\ s ]] && [ -s "$out/$kind/points.tsv" ] && grep -q 'rank 1' "$out/log" || return 1
    done
}

whole_run() {
    local begin
    local less=()
    [ -z "$fake" ] || less=("${quick[@]}")
    ! knows --compute || less+=(--no-compute)
    begin=$(seconds)
    LIMIT=240 limited railgauge run -t nccl --share-gpu --ranks 2 -e "$top" --no-verdict --no-plots "${less[@]}" -o "$out/campaign" || return 1
    [ -s "$out/campaign/matrix.json" ] || return 1
    row "railgauge run, 2 shared ranks, up to $top" "$(since "$begin")" s
}

knows() { [[ $("$probe" probe --help 2>&1) == *" $1"* ]]; }
needs_mpi() { # FUNCTION - of a check that wants the MPI program
    command -v mpirun >/dev/null || { skip "mpirun is not installed (tests/gpu/carry.sh)"; return; }
    [ -x "$build/railgauge-probe" ] || { skip "railgauge-probe is not built"; return; }
    knows --share-gpu || { skip "railgauge-probe has no --share-gpu"; return; }
    "$1"
}
if ! facts=$(timeout -k 5 120 "$loop" all_reduce 1 1 1K 2>"$out/why" | grep '^#'); then
    echo "1..0 # SKIP no GPU: $(head -n 1 "$out/why")"
    exit 0
fi
[ -z "$fake" ] || echo '# FAKE: the libraries of tests/fake, no GPU; the figures say nothing'
echo "$facts"
check 'collectives on one rank move the right data' single
check 'memory, host link and matrix products' needs_mpi compute
check 'ranks that share the GPU move the right data over sockets' needs_mpi shared_ranks
check 'a flipped bit is found, with its rank and its byte' needs_mpi corruption
check 'CUDA graphs move the right data too' needs_mpi graphs
check 'every place of the buffers gets the right data' needs_mpi places
check 'the probe and a bare loop agree' needs_mpi yardstick
check 'a rank that dies, stops or spins is told' needs_mpi verdicts
check 'a whole campaign' needs_mpi whole_run
echo "1..$tests"
exit $((failed > 0))

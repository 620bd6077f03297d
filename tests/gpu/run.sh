#!/bin/bash
# run.sh - what only a machine with a GPU can show, in one call of at most 9 minutes.
#
#   RG_BUILD=build tests/gpu/run.sh [--page FILE] [--out DIR] [--fake]
#
# A bare machine with nothing but NVIDIA's driver is enough (tests/gpu/carry.sh brings the rest): each check
# passes, fails, or is not run, with exactly what it lacks.  TAP on standard output, then the page. In
# RG_BUILD/gpu: results.md, the page, first the verdicts, then the figures with their targets; checks.tsv and
# figures.tsv, the same as tables; a log of each check.  They are written anew around every check: who
# is cut off has the ones that were done, and the page says which one was running.  --page FILE: a copy of the
# page, when the GPU is a real one; --out DIR: a copy of all, the logs packed into one file.  A missed target
# is printed as such and is no failure: FAIL means that something could not be measured or was wrong.
# Exit codes: 0 nothing failed, 1 a check failed, 2 none could be run.
# Checks come by what they are worth.  One that would begin after RG_GPU_SECONDS (530) is not run, and
# each is ended after its own limit.  With one GPU ranks share it; checks of several say so.
# RG_GPU_ONLY names the only checks to run; RG_GPU_SMALL=1 takes --fake's small sizes.
# --fake runs the same script on the libraries of tests/fake, to test the script itself: its figures
# say nothing, and no page is written.
# shellcheck disable=SC2317 # the functions of the checks are called by their names
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

fake='' page='' copy='' command="tests/gpu/run.sh $*"
while [ $# -gt 0 ]; do
    case $1 in
    --fake) fake=1 ;;
    --page) page=${2:?} && shift ;;
    --out) copy=${2:?} && shift ;;
    *) sed -n '4s/^# *//p' "$0" >&2 && exit 64 ;;
    esac
    shift
done
build=${RG_BUILD:-build} budget=${RG_GPU_SECONDS:-530}
[ -z "$fake" ] || budget=${RG_GPU_SECONDS:-3600}
out=$build/gpu${fake:+-fake}
rm -rf "$out" && mkdir -p "$out" && mkdir -p "${copy:-$out}" || exit 74
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PATH="$PWD/$build:$PATH"
[ "${build#/}" = "$build" ] || PATH="$build:$PATH"
for f in "$build/carry/env.sh" carry/env.sh; do
    # shellcheck source=/dev/null
    [ -n "$fake" ] || [ ! -r "$f" ] || { . "$PWD/$f" 2>/dev/null || . "$f"; }
done

# The largest message, iterations of a loop, turns, shared ranks and their largest message, faults.
most=1G loops=50 turns=3 many='2 4 8' top=4M faults='kill stop spin'
[ -z "$fake${RG_GPU_SMALL-}" ] || most=1M loops=10 turns=1 many='2 4' top=64K faults=kill
if [ -n "$fake" ]; then
    export LD_LIBRARY_PATH=${RG_BUILD:-$PWD/build}/fake FAKE_GPU=$PWD/$out/gpus
    [ "${out#/}" = "$out" ] || FAKE_GPU=$out/gpus
    echo "devices ${RG_GPU_FAKES:-1}" >"$FAKE_GPU"
fi
probe=railgauge-probe loop=$build/tests/gpu/loop
quick=(-w 2 --epochs 1 --no-retest)

# What a command may take: the rest of its check, and of the whole.
until=$budget
left() { echo $((budget > SECONDS ? budget - SECONDS : 0)); }
limited() { # COMMAND... - ended after LIMIT seconds, and when its check has no time left
    local limit=${LIMIT:-600} rest=$((until > SECONDS ? until - SECONDS : 1))
    timeout -k 5 "$((limit < rest ? limit : rest))" "$@"
}
ranks() {
    limited mpirun -n "$1" -x LD_LIBRARY_PATH --oversubscribe --bind-to none --mca btl vader,self \
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
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:--}" "$verdict" >>"$out/figures.tsv"
    echo "# $1: $2 $3${4:+ (asked: $4, $verdict)}"
}

# --- what is there: loop --facts, and what else a check needs; each with the reason where it is not ---
fact() { awk -F'\t' -v k="$1" -v c="${2:-2}" '$1 == k {print $c; exit}' "$out/facts.tsv"; }
gpus() { awk -F'\t' '$1 == "gpu" && $3 != "no"' "$out/facts.tsv" | wc -l; }
said() { # FACT - why it is not there; nothing: it is
    [ "$(fact "$1")" != no ] || { why=$(fact "$1" 3) && return 1; }
    [ -n "$(fact "$1")" ] || { why="$loop --facts ended before it: $(tail -n 1 "$out/facts.err")" && return 1; }
}
starts() { # PROGRAM OPTION - it does, or the loader says what it lacks
    command -v "$1" >/dev/null || { why="$1 is not built or not on PATH" && return 1; }
    "$@" >"$out/starts" 2>&1 || { why="$1 does not start: $(head -n 1 "$out/starts" | tr '\t' ' ')" && return 1; }
}
has_gpu() {
    said driver && { [ "$(gpus)" -gt 0 ] || { why=$(awk -F'\t' '$1 == "gpu" {print $4; exit}' "$out/facts.tsv") && return 1; }; }
}
has_nccl() { has_gpu && { said nccl || { why="$why (carry.sh --nccl, pip install nvidia-nccl-cu13, or RAILGAUGE_NCCL=FILE)" && return 1; }; }; }
has_mpi() {
    command -v mpirun >/dev/null || { why='mpirun is not installed (tests/gpu/carry.sh brings it)' && return 1; }
    starts "$probe" probe --version
}
has_mode() { # several processes may use one GPU (CUcomputemode: 0 default, 2 prohibited, 3 one process)
    case $(fact gpu 8) in
    0 | -1 | '') ;;
    *) why="compute mode $(fact gpu 8) of the GPU allows one process at most (nvidia-smi -c DEFAULT)" && return 1 ;;
    esac
}
has_shared() { has_nccl && has_mpi && has_mode; }
has_gpu_mpi() { has_gpu && has_mpi; }
has_several() {
    has_nccl && has_mpi && { [ "$(gpus)" -gt 1 ] || { why="one GPU is here; it needs two" && return 1; }; }
}
has_torch() {
    command -v python3 >/dev/null || { why='python3 is not installed' && return 1; }
    timeout 60 python3 -c 'import torch; assert torch.cuda.is_available(), "torch sees no GPU"' 2>"$out/starts" ||
        { why="PyTorch: $(tail -n 1 "$out/starts")" && return 1; }
}
plugin=$build/librailgauge-nccl.so
has_plugin() {
    has_gpu && has_mode || return 1
    [ -e "$plugin" ] || { why="$plugin is not built" && return 1; }
    has_torch
}
has_recorder() {
    has_shared || return 1
    [ -e "$plugin" ] || { why="$plugin is not built" && return 1; }
}
has_nccl_tests() {
    has_nccl && has_mpi || return 1
    command -v all_reduce_perf >/dev/null || { why='all_reduce_perf of nccl-tests is not on PATH' && return 1; }
}
has_verbs() {
    has_gpu && has_mpi || return 1
    compgen -G '/sys/class/infiniband/*' >/dev/null || { why='no RDMA device: /sys/class/infiniband is empty or missing' && return 1; }
    [[ $("$probe" probe --help=network 2>&1) == *verbs* ]] || { why='railgauge-probe knows no transport verbs' && return 1; }
}
has_nothing() { :; }

# --- the checks: how much each may take, what it needs ---
name=() title=() limit=() needs=() verdict=() took=() reason=()
check() { # FUNCTION SECONDS NEEDS TITLE
    name+=("$1") limit+=("$2") needs+=("$3") title+=("$4")
    verdict+=('NOT RUN') took+=(-) reason+=('it was not reached')
}
run_check() { # INDEX
    local i=$1 log rc=77 begin=$SECONDS
    log=$out/$(printf '%02d-%s.log' "$((i + 1))" "${name[i]}") why="no time is left of $budget s"
    [[ " ${RG_GPU_ONLY:-${name[i]}} " == *" ${name[i]} "* ]] || { reason[i]='not asked for' && tell "$i" "$log" && pages && return; }
    until=$((SECONDS + limit[i] < budget ? SECONDS + limit[i] : budget))
    verdict[i]='CUT OFF' reason[i]='it was running when this page was written' && pages
    [ "$(left)" -lt 10 ] || ! "has_${needs[i]}" || { why='' && "${name[i]}" >"$log" 2>&1; rc=$?; }
    took[i]=$((SECONDS - begin)) reason[i]=$why
    case $rc in
    0) verdict[i]=PASS ;;
    77) verdict[i]='NOT RUN' ;;
    *)
        verdict[i]=FAIL
        reason[i]=$(grep -v '^# ' "$log" | tail -n 1 | cut -c1-200 | tr '\t|' '  ')
        [ "$SECONDS" -lt "$until" ] || reason[i]="ended after $((SECONDS - begin)) s; ${reason[i]}"
        ;;
    esac
    tell "$i" "$log"
    pages
}
tell() { # INDEX LOG - a line of TAP and what it measured
    [ ! -e "$2" ] || grep '^# ' "$2"
    case ${verdict[$1]} in
    PASS) echo "ok $(($1 + 1)) - ${title[$1]}" ;;
    FAIL)
        echo "not ok $(($1 + 1)) - ${title[$1]}"
        grep -v '^# ' "$2" | tail -n 15 | sed 's/^/#   /'
        ;;
    *) echo "ok $(($1 + 1)) - ${title[$1]} # SKIP ${reason[$1]}" ;;
    esac
}
verdicts() { printf '%s\n' "${verdict[@]}" | grep -cx "$1"; }
put() { # FILE - what is read, whole or not at all: who is cut off while writing leaves what was there
    cat >"$1.new" && mv "$1.new" "$1"
}
pages() { # what is known so far; the table last, so that it never tells more than the page
    local i
    page_text | put "$out/results.md"
    {
        printf 'check\tverdict\tseconds\treason\tlog\n'
        for i in "${!name[@]}"; do
            printf '%s\t%s\t%s\t%s\t%s\n' "${name[i]}" "${verdict[i]}" "${took[i]}" "${reason[i]:--}" \
                "$(printf '%02d-%s.log' "$((i + 1))" "${name[i]}")"
        done
    } | put "$out/checks.tsv"
    [ -n "$fake" ] || [ -z "$page" ] || cp "$out/results.md" "$page"
    [ -z "$copy" ] || cp "$out"/{results.md,checks.tsv,figures.tsv,facts.tsv} "$copy"
    [ -z "$copy" ] || tar -C "$build" -czf "$copy/logs.tar.gz" "${out##*/}" 2>/dev/null
}
page_text() {
    local i
    echo "# What was measured on a GPU${fake:+ (FAKE: not on a GPU)}"
    echo
    echo "$(verdicts PASS) passed, $(verdicts FAIL) failed, $(verdicts 'NOT RUN') not run."
    echo
    echo '| check | verdict | s | why |'
    echo '|---|---|---|---|'
    for i in "${!name[@]}"; do
        echo "| ${title[i]} | ${verdict[i]} | ${took[i]} | ${reason[i]} |"
    done
    echo
    echo "Made by \`$command\` on $(date -u +%Y-%m-%d), version $(railgauge --version 2>&1 | head -n 1)."
    awk -F'\t' '$1 == "driver" || $1 == "nccl" {print "- " $1 ": " ($2 == "no" ? $3 : $2 ($3 == "" ? "" : ", " $3))}' "$out/facts.tsv"
    echo "- GPUs: $(gpus)"
    awk -F'\t' '$1 == "gpu" {print "- " $2 ": " $3 ", " $4 (NF > 4 ? ", " $5 ", sm_" $6 ", compute mode " $8 : "")}' "$out/facts.tsv"
    [ -n "$fake" ] || ! command -v nvidia-smi >/dev/null ||
        echo "- kernel driver $(timeout 20 nvidia-smi --query-gpu=driver_version --format=csv,noheader | head -n 1)"
    echo
    echo '| what | figure | asked | |'
    echo '|---|---|---|---|'
    awk -F'\t' 'NR > 1 {print "| " $1 " | " $2 " " $3 " | " $4 " | " $5 " |"}' "$out/figures.tsv"
}
skip() { why=$1; return 77; }

# --- what they do ---

# The build's kernels: as machine code, and as PTX that the driver compiles (CUDA C++ Programming Guide,
# "CUDA Environment Variables": CUDA_FORCE_PTX_JIT, CUDA_DISABLE_PTX_JIT).
# First what a container or a site may have made less of than a program expects.
kernels() {
    local how
    cat "$out/facts.tsv"
    row 'memory that a process may lock (ulimit -l)' "$(ulimit -l)" KiB
    row 'room in /dev/shm' "$(df -Pk /dev/shm 2>/dev/null | awk 'END {printf "%.0f", $4 / 1024}')" MiB
    row 'processors that this process may use' "$(nproc)" ''
    row 'network interfaces' "$(find /sys/class/net -mindepth 1 -printf '%f ' 2>/dev/null)" ''
    row 'CUDA_VISIBLE_DEVICES' "${CUDA_VISIBLE_DEVICES-not set}" ''
    row 'MIG instances' "$(timeout 20 nvidia-smi -L 2>/dev/null | grep -c ' MIG ')" ''
    command -v nvidia-smi >/dev/null && timeout 30 nvidia-smi -q
    for how in CUDA_DISABLE_PTX_JIT CUDA_FORCE_PTX_JIT; do
        env "$how=1" CUDA_CACHE_DISABLE=1 timeout 60 "$loop" --facts >"$out/jit.tsv" 2>&1
        row "kernels load with $how" "$(awk -F'\t' '$1 == "kernels" {print $2 ($3 == "" ? "" : ": " substr($3, 1, 120)); exit}' "$out/jit.tsv")" ''
    done
    [ "$(fact kernels)" = yes ] || { fact kernels 3; return 1; }
}

# Topology, NVML's facts, libraries.
discover() {
    limited railgauge discover -o "$out/topology.json" >"$out/discover" 2>&1
    local rc=$?
    cat "$out/discover"
    [ $rc = 0 ] && [ -s "$out/topology.json" ] || return 1
    limited railgauge discover --check -o "$out/checked.json"
    row 'discover --check ends with exit code' $? ''
    limited "$probe" discover --nccl -o "$out/nccl.json" 2>&1
    row 'discover --nccl ends with exit code' $? ''
    # A container may hide /sys: then the GPU is known to the driver alone.
    [ -e "/sys/bus/pci/devices/$(fact gpu 5)" ] || { row "/sys/bus/pci/devices/$(fact gpu 5)" 'not visible' '' && return 0; }
    grep -q "$(fact gpu 5)" "$out/topology.json" || { echo "topology.json has no GPU $(fact gpu 5)"; return 1; }
}

single() {
    local op
    for op in all_reduce all_gather broadcast reduce_scatter; do
        # Its own words on a first failure are worth most; its log is not on standard output.
        NCCL_DEBUG=INFO NCCL_DEBUG_FILE=$out/single.%p.nccl limited "$loop" "$op" 1 "$loops" 1K 1M "$most" >"$out/single" ||
            { grep -h -m 5 WARN "$out"/single.*.nccl; return 1; }
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
    shared 2 typed -d bfloat16 --op all_reduce,reduce_scatter -b 1K -e "$top" -f 32 -n 2 || return 1
    [ "$(column check "$out/typed/points.tsv" | sort -u)" = ok ]
}

corruption() {
    RAILGAUGE_FLIP=all_reduce:1:77:3 shared 2 flip --op all_reduce -b 4K -e 4K -n 1
    [ "$(column check "$out/flip/points.tsv" | sort -u)" != ok ] &&
        column note "$out/flip/points.tsv" | grep 'rank 1.*element 38 '
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
    local small=()
    [ -z "$fake" ] || small=(--device-bytes 1M --gemm "bf16:512x256x128,bf16:256x256x256,fp8:512x256x128" --model llama3.1-8b)
    ranks 1 "$probe" probe --compute "${small[@]}" -o "$out/compute.tsv" || return 1
    # Products: of each type the slowest, the middle and the fastest shape.
    awk -F'\t' '/^#/ {next} !at["kind"] {for (i = 1; i <= NF; i++) at[$i] = i; next}
        {v = $at["value"]; kind = $at["kind"]; limit = $at["limit"]}
        v !~ /^[0-9]/ {next}
        kind == "gemm" {print "gemm", $at["dtype"], v | "sort -k2,2 -k3,3g"; next}
        $at["k"] > 0 {print "gemm", kind, v | "sort -k2,2 -k3,3g"; next}
        kind ~ /^launch/ {printf "%s\t%.2f\tus\n", kind, 1e6 * v; next}
        kind == "load" {printf "a load that waits for the one before, from memory\t%.0f\tns\n", 1e9 * v; next}
        limit > 0 {
            printf "%s, of what the hardware allows\t%.1f\t%%", kind, 100 * v / limit
            print kind ~ /^(hbm_.*|check|h2d|d2h)$/ ? "\t>= 80" : ""}' "$out/compute.tsv" |
        awk '$1 != "gemm" {print; next} {rate[$2, ++n[$2]] = $3 / 1e12}
            END {for (t in n) printf "%s (%d shapes): slowest, median, fastest\t%.4g, %.4g, %.4g\t%s\n",
                t ~ /[0-9]/ ? "products of " t : t, n[t], rate[t, 1], rate[t, int((n[t] + 1) / 2)], rate[t, n[t]],
                t ~ /[0-9]|attention|grouped/ ? "TFLOP/s" : "TB/s"}' >"$out/figures"
    [ -s "$out/figures" ] || return 1
    # Every kind of kernel of a model has figures; of the attention core, or the reason is there.
    for kind in norm gate rotary cast loss adam launch_graph; do
        grep -q "^${kind}[^a-z_]" "$out/figures" ||
            { echo "# no figure of $kind: $(awk -F'\t' -v k="$kind" '$5 == k {print $NF; exit}' "$out/compute.tsv")" && return 1; }
    done
    grep -q '^attention_backward ' "$out/figures" ||
        echo "# attention core: $(awk -F'\t' '$5 == "attention" {print $NF; exit}' "$out/compute.tsv")"
    while IFS=$'\t' read -r what figure unit target; do
        row "$what" "$figure" "$unit" "$target"
    done <"$out/figures"
}

# A rank that is killed, and one that stops: how much longer the run takes than one without a fault.
faults() {
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
        [ -s "$out/$kind/points.tsv" ] && grep -q 'rank 1' "$log" || return 1
    done
}

whole_run() {
    local begin less=(--no-compute)
    [ -z "$fake" ] || less+=("${quick[@]}")
    begin=$(seconds)
    limited railgauge run -t nccl --share-gpu --ranks 2 -e "$top" --no-verdict --no-plots "${less[@]}" -o "$out/campaign" || return 1
    # It ends well also when a pair is dead: that is its answer.  What is measured again is not compared again.
    [ -s "$out/campaign/matrix.json" ] || return 1
    if [ "$(column stop "$out/campaign/points.tsv" | grep -c failed)" != 0 ] ||
        [ "$(column check "$out/campaign/points.tsv" | grep -vx no | sort -u)" != ok ]; then
        column note "$out/campaign/points.tsv" | grep -m 1 . | cut -c1-300
        return 1
    fi
    row "railgauge run, 2 shared ranks, up to $top" "$(since "$begin")" s
}

# A recorded job against the same job unrecorded, and what is read back of the record.
recorded() {
    local bare with
    limited python3 tests/gpu/job.py 2 30 >"$out/job-bare" || return 1
    RAILGAUGE_NCCL_DIR=$out/record NCCL_PROFILER_PLUGIN=$(realpath "$plugin") \
        limited python3 tests/gpu/job.py 2 30 >"$out/job-with" || return 1
    bare=$(awk '$1 == "step" {print $3}' "$out/job-bare" | median) with=$(awk '$1 == "step" {print $3}' "$out/job-with" | median)
    row 'a recorded step of a PyTorch job against an unrecorded one, time' "$(awk "BEGIN {printf \"%.3f\", $with / $bare}")" '' '<= 1.05'
    [ -n "$(ls -A "$out/record" 2>/dev/null)" ] || { echo 'the plugin has recorded nothing'; return 1; }
    [[ $(railgauge import --help=record) == *--nccl-profile* ]] || { echo '# import knows no --nccl-profile: the record was not read'; return 0; }
    mkdir -p "$out/recorded"
    limited railgauge import --nccl-profile "$out/record" -o "$out/recorded/points.tsv" && [ -s "$out/recorded/points.tsv" ]
}

# The same sizes by nccl-tests: all GPUs in one process there, a rank each here.
beside_nccl_tests() {
    local n size ours theirs
    n=$(gpus)
    limited all_reduce_perf -b 1M -e 64M -f 8 -g "$n" -w 5 -n "$loops" -c 1 -d int32 >"$out/nccl-tests" || return 1
    cat "$out/nccl-tests"
    rm -rf "$out/ours" && mkdir "$out/ours" &&
        ranks "$n" "$probe" probe -t nccl -o "$out/ours/points.tsv" --same-buffer --op all_reduce -b 1M -e 64M -f 8 -d int32 -n "$loops" || return 1
    for size in 1048576 8388608 67108864; do # out-of-place time: column 6, in us
        theirs=$(awk -v b=$size '$1 == b {print 1e-6 * $6}' "$out/nccl-tests")
        ours=$(columns bytes sec "$out/ours/points.tsv" | awk -v b=$size '$1 == b {print $2}')
        [ -n "$theirs" ] && [ -n "$ours" ] || return 1
        row "all_reduce of $size bytes, $n GPUs, ours against nccl-tests', time" "$(awk "BEGIN {printf \"%.3f\", $ours / $theirs}")" '' '<= 1.1'
    done
}

# Every GPU a rank: NCCL, and copies from GPU to GPU without it.
several() {
    local n t
    n=$(gpus)
    for t in nccl copy; do
        rm -rf "$out/all-$t" && mkdir "$out/all-$t" &&
            ranks "$n" "$probe" probe -t $t -o "$out/all-$t/points.tsv" --op pairs -b 1K -e "$most" -f 32 -n 5 "${quick[@]}" || return 1
        [ "$(column check "$out/all-$t/points.tsv" | sort -u)" = ok ] || return 1
        row "pairs of $n GPUs by $t, the best at the largest size" "$(columns bytes sec "$out/all-$t/points.tsv" |
            awk '$2 > 0 && $1 / $2 > m {m = $1 / $2} END {printf "%.1f", m / 1e9}')" GB/s
    done
    limited "$loop" all_reduce "$n" "$loops" 1K 1M "$most" >"$out/loop-all" || return 1
    row "all_reduce of $most, $n GPUs, the bare loop" "$(awk -F'\t' 'END {printf "%.1f", $3 / $4 / 1e9}' "$out/loop-all")" GB/s
}

# --- the third call: what no other check has; the others' GPUs are one here ---
probed() { # TRANSPORT RANKS OUT WORD... - as shared(), by any transport; its points are right
    rm -rf "${out:?}/$3" && mkdir "$out/$3" &&
        ranks "$2" "$probe" probe -t "$1" --share-gpu -o "$out/$3/points.tsv" "${quick[@]}" "${@:4}" &&
        [ "$(column check "$out/$3/points.tsv" | sort -u)" = ok ]
}
last_time() { columns bytes sec "$1" | sort -g | awk 'END {print $2}'; } # FILE - of its largest message

copies() {
    probed copy 2 copies --op pairs -b 1K -e "$top" -f 8 -n 5 || return 1
    row "pairs by copies, 2 shared ranks, the best at the largest size" "$(columns bytes sec "$out/copies/points.tsv" |
        awk '$2 > 0 && $1 / $2 > m {m = $1 / $2} END {printf "%.1f", m / 1e9}')" GB/s
}

registered() {
    probed nccl 2 plain --op all_reduce -b "$top" -e "$top" -n 5 &&
        probed nccl 2 registered --nccl-mem --register buffer --op all_reduce -b "$top" -e "$top" -n 5 || return 1
    row "all_reduce of $top in registered buffers against unregistered ones, time" "$(awk -v a="$(last_time "$out/registered/points.tsv")" \
        -v b="$(last_time "$out/plain/points.tsv")" 'BEGIN {printf "%.3f", a / b}')" ''
}

pair_comms() {
    local how
    for how in split shared; do
        probed nccl 3 "comms-$how" --pair-comms "$how" --op pair_latency -b 1K -e 1K -n 3 || return 1
        row "points of pairs with --pair-comms $how" "$(column op "$out/comms-$how/points.tsv" | wc -l)" ''
    done
}

sweep() {
    rm -rf "$out/sweep" && mkdir "$out/sweep" &&
        ranks 2 "$probe" probe -t nccl --share-gpu --sweep --op all_reduce -b 1K -e 64K -f 8 -n 3 "${quick[@]}" -o "$out/sweep/points.tsv" || return 1
    row 'algorithms and protocols that the sweep measured' "$(find "$out/sweep/sweep" -name '*-*.tsv' | wc -l)" '' '>= 2'
}

# The plugin in the probe's own ranks: what is recorded is what was measured.
plugin_probe() {
    local n
    rm -rf "$out/probe-record" "$out/imported" && mkdir "$out/probe-record" "$out/imported"
    RAILGAUGE_NCCL_DIR=$out/probe-record NCCL_PROFILER_PLUGIN=$(realpath "$plugin") \
        probed nccl 2 recorded-probe --op all_reduce -b 1K -e 64K -f 8 -n "$loops" || return 1
    n=$(find "$out/probe-record" -name '*.rgnccl' | wc -l)
    [ "$n" = 2 ] || { echo "$n files of 2 ranks"; return 1; }
    limited railgauge import --nccl-profile "$out/probe-record" -o "$out/imported/points.tsv" || return 1
    row 'sizes of all_reduce in the record of the probe' "$(column bytes "$out/imported/points.tsv" | sort -u | wc -l)" '' '>= 3'
}

types() {
    local type
    for type in uint32 bfloat16; do
        probed nccl 2 "type-$type" -d "$type" --op all_reduce,reduce_scatter -b "$top" -e "$top" -n 5 || return 1
    done
    row "all_reduce of $top in bfloat16 against uint32, time" "$(awk -v a="$(last_time "$out/type-bfloat16/points.tsv")" \
        -v b="$(last_time "$out/type-uint32/points.tsv")" 'BEGIN {printf "%.3f", a / b}')" ''
}

# Ranks that share the GPU over the NIC of this machine; the transport says what memory it registered.
verbs() {
    rm -rf "$out/verbs" && mkdir "$out/verbs" &&
        ranks 2 "$probe" probe -t verbs --memory gpu --share-gpu -o "$out/verbs/points.tsv" -e "$top" -n 5 "${quick[@]}" || return 1
    [ "$(column check "$out/verbs/points.tsv" | sort -u)" = ok ]
}

"$loop" --facts >"$out/facts.tsv" 2>"$out/facts.err" || true
printf 'what\tvalue\tunit\tasked\tverdict\n' >"$out/figures.tsv"

if [ -n "${RG_GPU_CHECKS-}" ]; then # those of eight.sh or trays.sh
    # shellcheck source=/dev/null
    . "$RG_GPU_CHECKS"
else
    check kernels 100 gpu 'the GPU opens and the kernels of this build load'
    check single 60 nccl 'collectives on one rank move the right data'
    check shared_ranks 120 shared 'ranks that share the GPU move the right data over sockets'
    check discover 60 gpu_mpi 'what this machine is: GPUs, NVML, libraries'
    check compute 120 gpu_mpi 'memory, host link and matrix products'
    check several 120 several 'pairs of all GPUs, by NCCL and by copies'
    check yardstick 90 shared 'the probe and a bare loop agree'
    check graphs 60 shared 'CUDA graphs move the right data too'
    check faults 120 shared 'a rank that dies, stops or spins is told'
    check whole_run 120 shared 'a whole campaign'
    check recorded 90 plugin 'a PyTorch job is recorded by the profiler plugin'
    check beside_nccl_tests 60 nccl_tests 'the probe and nccl-tests agree'
    check corruption 30 shared 'a flipped bit is found, with its rank and its byte'
    check places 60 shared 'every place of the buffers gets the right data'
    check verbs 60 verbs 'GPU memory is registered with a NIC'
    check copies 60 shared 'mapped memory within one GPU moves the right data'
    check registered 60 shared 'registered buffers get the right data'
    check pair_comms 90 shared 'communicators of pairs, made by splitting or shared, move the right data'
    check sweep 90 shared 'every algorithm and protocol moves the right data'
    check plugin_probe 60 recorder 'the profiler plugin records the probe itself'
    check types 60 shared 'bfloat16 and uint32 are reduced right'
fi

[ -z "$fake" ] || echo '# FAKE: the libraries of tests/fake, no GPU; the figures say nothing'
for i in "${!name[@]}"; do
    run_check "$i"
done
echo "1..${#name[@]}"
sed 's/^/# /' "$out/results.md"
[ "$(verdicts FAIL)" = 0 ] || exit 1
[ "$(verdicts PASS)" -gt 0 ] || exit 2

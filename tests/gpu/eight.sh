#!/bin/bash
# eight.sh - what one GPU cannot show: a host of eight, or as many as RG_GPU_EIGHT says.
#
#   RG_BUILD=build tests/gpu/eight.sh [--page FILE] [--out DIR] [--fake]
#
# NVLS on and off, bfloat16 against uint32, symmetric registration, the pass over NICs: the checks below, run and
# reported by run.sh, whose options and variables these are.  --fake proves the script on the stand-ins.
# shellcheck disable=SC2034,SC2154,SC2317 # run.sh reads this file, has these variables, and calls the functions by name
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    RG_GPU_CHECKS=$here/eight.sh RG_GPU_FAKES=${RG_GPU_FAKES:-${RG_GPU_EIGHT:-8}} exec "$here/run.sh" "$@"
fi
eight=${RG_GPU_EIGHT:-8}
has_eight() { has_nccl && has_mpi && { [ "$(gpus)" -ge "$eight" ] || { why="$(gpus) GPUs are here; it needs $eight" && return 1; }; }; }
has_eight_nics() { has_eight && has_verbs; }

alone() { # OUT WORD... - a rank on each GPU; its points are right
    rm -rf "${out:?}/$1" && mkdir "$out/$1" &&
        ranks "$eight" "$probe" probe -t nccl -o "$out/$1/points.tsv" "${quick[@]}" "${@:2}" &&
        [ "$(column check "$out/$1/points.tsv" | sort -u)" = ok ]
}
against() { # WHAT OUT OUT TARGET - time of the largest all_reduce, one against the other
    row "$1" "$(awk -v a="$(last_time "$out/$2/points.tsv")" -v b="$(last_time "$out/$3/points.tsv")" 'BEGIN {printf "%.3f", a / b}')" '' "$4"
}

nvls() {
    NCCL_NVLS_ENABLE=1 alone nvls -d bfloat16 --op all_reduce -b "$most" -e "$most" -n 5 &&
        NCCL_NVLS_ENABLE=0 alone no-nvls -d bfloat16 --op all_reduce -b "$most" -e "$most" -n 5 || return 1
    against "all_reduce of $most in bfloat16, NVLS against without, time" nvls no-nvls '<= 1'
}
types_of_eight() {
    local type
    for type in uint32 bfloat16; do
        alone "eight-$type" -d "$type" --op all_reduce,reduce_scatter -b "$most" -e "$most" -n 5 || return 1
    done
    against "all_reduce of $most, bfloat16 against uint32, time" eight-bfloat16 eight-uint32 '<= 1'
}
symmetric() {
    alone plain -d bfloat16 --op all_reduce,reduce_scatter,all_gather -b 64K -e "$top" -f 8 -n 5 &&
        alone symmetric -d bfloat16 --nccl-mem --register symmetric --op all_reduce,reduce_scatter,all_gather -b 64K -e "$top" -f 8 -n 5 || return 1
    against "all_reduce of $top in symmetric memory against unregistered, time" symmetric plain ''
    # The probe names operations that ran ordinary kernels; with a library that has none that is each of them.
    grep -h -m 3 -i 'symmetric' "$log" || true
}
nic_pass() {
    rm -rf "${out:?}/nics"
    limited railgauge run -t nccl --ranks "$eight" --op pairs -e "$top" --no-verdict --no-plots --no-compute -o "$out/nics" || return 1
    [ "$(awk -F'\t' '/^[0-9]/ && $4 ~ /^nic/' "$out/nics/points.tsv" | wc -l)" -gt 0 ] || { echo 'no round of the NIC pass in points.tsv'; return 1; }
}

check kernels 100 gpu 'the GPU opens and the kernels of this build load'
check nvls 90 eight 'all_reduce with NVLS and without moves the right data'
check types_of_eight 90 eight 'bfloat16 and uint32 are reduced right by all GPUs'
check symmetric 90 eight 'symmetric memory gets the right data'
check nic_pass 120 eight_nics 'the pass over NICs measures every GPU of the host'

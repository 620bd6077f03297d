#!/bin/bash
# trays.sh - what one host cannot show: two trays of an NVLink rack, and IMEX broken on purpose.
#
#   RG_GPU_TRAYS="tray01:4,tray02:4" RG_GPU_BREAK="ssh tray02 systemctl stop nvidia-imex" \
#       RG_GPU_MEND="ssh tray02 systemctl start nvidia-imex" RG_BUILD=build tests/gpu/trays.sh [--page FILE] [--out DIR] [--fake]
#
# MNNVL between the trays is used and proven; with IMEX broken the job fails, says so, and does not fall back; mended, it
# works again.  Run and reported by run.sh.  --fake plays two trays by host names on the stand-ins.
# shellcheck disable=SC2016,SC2034,SC2154,SC2317 # run.sh reads this file, has these variables, and calls the functions by name
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    RG_GPU_CHECKS=$here/trays.sh RG_GPU_FAKES=${RG_GPU_FAKES:-4} exec "$here/run.sh" "$@"
fi
at=$(realpath "$out")
if [ -n "$fake" ]; then
    # Story of the stand-in for NCCL: one clique of both hosts, or, broken, none between them.
    story() { printf '%s\n' 'host 0-3 n0' 'host 4-7 n1' 'channels 4' 'socket eth0:10.0.0.1<0>' 'nic mlx5_0:1/IB' "$@" >"$at/story"; }
    printf '#!/bin/sh\nexec unshare -u sh -c '\''hostname n$((OMPI_COMM_WORLD_RANK / 4)); exec "$@"'\'' sh "$@"\n' >"$at/on_host"
    chmod +x "$at/on_host"
    export FAKE_NCCL=$at/story
    break_imex() { story 'clique 0-3' 'clique 4-7'; }
    mend_imex() { story 'clique 0-7'; }
    trays() { limited mpirun -n 8 --oversubscribe --bind-to none --mca btl self,tcp --mca btl_tcp_if_include lo --mca mpi_yield_when_idle 1 "$at/on_host" "$@"; }
    has_trays() { has_nccl && has_mpi && { unshare -u true 2>/dev/null || { why='unshare -u is not allowed here' && return 1; }; }; }
else
    break_imex() { limited bash -c "$RG_GPU_BREAK"; }
    mend_imex() { limited bash -c "$RG_GPU_MEND"; }
    trays() { limited mpirun -H "$RG_GPU_TRAYS" --map-by slot --bind-to numa -x LD_LIBRARY_PATH "$@"; }
    has_trays() { has_nccl && has_mpi && { [ -n "${RG_GPU_TRAYS-}" ] || { why='RG_GPU_TRAYS names no hosts' && return 1; }; }; }
fi
has_breakable() {
    has_trays || return 1
    [ -n "$fake" ] || { [ -n "${RG_GPU_BREAK-}" ] && [ -n "${RG_GPU_MEND-}" ]; } || { why='RG_GPU_BREAK and RG_GPU_MEND are not set' && return 1; }
}
over_mnnvl() { # OUT
    rm -rf "${out:?}/$1" && mkdir "$out/$1" &&
        trays "$probe" probe -t nccl --path mnnvl --op all_reduce -b "$top" -e "$top" -n 3 "${quick[@]}" -o "$out/$1/points.tsv"
}

mnnvl() {
    mend_imex && over_mnnvl mnnvl || return 1
    [ "$(column check "$out/mnnvl/points.tsv" | sort -u)" = ok ] || return 1
    row "all_reduce of $top over two trays" "$(columns bytes sec "$out/mnnvl/points.tsv" | awk '$2 > 0 && $1 / $2 > m {m = $1 / $2} END {printf "%.1f", m / 1e9}')" GB/s
    grep -q 'P2P/MNNVL' "$out/mnnvl/topology.json" || { echo 'no connection by MNNVL in topology.json'; return 1; }
}
imex_broken() {
    local rc=0
    break_imex || { echo 'IMEX could not be broken'; return 1; }
    over_mnnvl broken || rc=$?
    mend_imex || { echo 'IMEX could not be mended: it is broken now'; return 1; }
    row 'exit code with IMEX broken' "$rc" ''
    [ "$rc" = 78 ] || { echo "exit code $rc with IMEX broken, not 78"; return 1; }
    over_mnnvl mended
}

check mnnvl 120 trays 'NVLink between two trays is used, and proven'
check imex_broken 200 breakable 'a broken IMEX is an error, and no slower way is taken'

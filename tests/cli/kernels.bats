#!/usr/bin/env bats
# kernels.bats - the GPU kernels as they are assembled: PTX that the oldest driver reads, and registers that leave room for
# the threads which kernels/kernels.c starts.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    ptx=$(realpath "${RG_BUILD:-build}")/kernels/kernels.ptx
    ptxas=${CUDA_HOME:-/usr/local/cuda}/bin/ptxas
    [ -e "$ptx" ] || skip "built without nvcc"
    [ -x "$ptxas" ] || skip "no ptxas in $ptxas"
}

# A multiprocessor has 65,536 registers: 40 leave room for 1,536 threads, 64 for 1,024.
@test "copies take at most 40 registers, checks of typed results 64, on the first and on Blackwell's architecture" {
    for sm in 80 100; do
        "$ptxas" -v -arch=sm_$sm -o /dev/null "$ptx" 2>log || skip "ptxas does not know sm_$sm: $(head -1 log)"
        awk '/Compiling entry function/ { split($0, q, "\047"); name = q[2] }
            /Used [0-9]+ registers/ { for (i = 1; i < NF; i++) if ($i == "Used") print name, $(i + 1) }' log >registers
        awk '$1 == "rg_copy" || $1 == "rg_read" { seen++; if ($2 > 40) bad = 1 }
            $1 == "rg_find_onehot" || $1 == "rg_find" { seen++; if ($2 > 64) bad = 1 }
            END { exit bad || seen != 4 }' registers || { cat registers && return 1; }
    done
}

#!/usr/bin/env bats
# copy.bats - --transport copy on the stand-in for the driver: who copies what, how memory is shared.

bats_require_minimum_version 1.5.0
load helper

setup() {
    # A copy of 64 KiB to the same or another GPU takes 26 ms by the stand-in's clock.
    need_stand_ins "hbm_Bps 5e6" "host_Bps 1e7" "fabric yes"
    quick=(--epochs 1 -n 15 -w 2 --no-retest) # a median of fewer shows where a thread lost its core
}

# copy N ARG... - points.tsv of N ranks; what it says goes to "log".
copy() {
    local n=$1
    shift
    ranks "$n" "$probe" probe --transport copy "${quick[@]}" -o points.tsv "$@" 2>log
}

# near OP BYTES SEC SHARE - the medians of this op and size lie within.
near() {
    awk -F'\t' -v op="$1" -v bytes="$2" -v want="$3" -v share="$4" '/^#/ { next }
        !c { for (i = 1; i <= NF; i++) at[$i] = i; c = 1; next }
        $at["op"] == op && $at["bytes"] == bytes { n++
            d = $at["sec"] / want - 1; if (d < -share || d > share) { bad++; print op, bytes, $at["sec"], "not", want } }
        END { exit !(n && !bad) }' points.tsv
}

@test "bandwidth is that of the copy engine; every size is verified; FABRIC handles are recorded" {
    copy 2 --op pair_bw,pair_bibw -b 64K -e 64K --pair-bytes 64K
    near pair_bw 65536 0.0262144 0.1
    near pair_bibw 65536 0.0262144 0.1
    [ "$(column check points.tsv | sort -u)" = ok ]
    grep -q 'transport=copy' points.tsv
    sed -n 2p points.tsv | cut -c3- | jq -e '.copy == "ce, write" and .copy_memory == "FABRIC handles"'
    [ -z "$(grep -vE ': about |of it samples|no NIC is measured' log)" ] # no warning
}

@test "read and multiprocessors move the same bytes" {
    copy 2 --op pair_bw,sendrecv -b 64K -e 64K --pair-bytes 64K --copy-way read
    near pair_bw 65536 0.0262144 0.1
    sed -n 2p points.tsv | cut -c3- | jq -e '.copy == "ce, read"'
    rm points.tsv
    copy 2 --op pair_bw,sendrecv -b 64K -e 64K --pair-bytes 64K --copy-engine sm || grep -q 'no kernels\|needs a kernel' log
    [ "$(column check points.tsv | sort -u)" = ok ] || grep -q 'needs a kernel' points.tsv
}

@test "four ranks in a ring, every pair, latency by a chain of loads" {
    copy 4 --op pairs,sendrecv -b 8 -e 64 -f 8 --pair-bytes 4K
    [ "$(column stop points.tsv | grep -c failed)" -eq 0 ]
    [ "$(column check points.tsv | sort -u)" = ok ]
    # 8 bytes: loads; 64 bytes: copies of 64 B at 2.5e7 B/s
    awk -F'\t' '/^#/ { next } !c { for (i = 1; i <= NF; i++) at[$i] = i; c = 1; next }
        $at["op"] == "pair_latency" && $at["bytes"] == 8 && $at["sec"] > 0 { n++ } END { exit n < 6 }' points.tsv
}

@test "without FABRIC handles memory is shared by CUDA IPC, and why is said and recorded" {
    printf 'fabric not-permitted\n' >gpus.txt
    copy 2 --op pair_bw -b 4K -e 4K --pair-bytes 4K
    grep -q 'memory is shared by CUDA IPC within hosts; FABRIC handles: rank 0 .*IMEX' log
    sed -n 2p points.tsv | cut -c3- | jq -e '.copy_memory | startswith("CUDA IPC within hosts; FABRIC handles: rank 0")'
    [ "$(column check points.tsv | sort -u)" = ok ]
}

@test "where neither works the point says why, and the log why FABRIC handles did not" {
    printf 'fabric no\n' >gpus.txt
    FAKE_FAIL=cuIpcOpenMemHandle_v2:201 copy 2 --op pair_bw -b 4K -e 4K --pair-bytes 4K || true
    [ "$(column stop points.tsv | sort -u)" = failed ]
    column note points.tsv | grep -q 'no shared memory: CUDA IPC: rank [01] .*CUDA_ERROR_INVALID_CONTEXT'
    grep -q 'FABRIC handles: rank 0 .*in no NVLink domain' log
}

@test "a flipped bit is found and named" {
    RAILGAUGE_FLIP=pair_bw:1:100:3 copy 2 --op pair_bw -b 4K -e 4K --pair-bytes 4K || true
    column note points.tsv | grep -q 'pair_bw of 4096 bytes: rank 1 (host .*): byte 100 (block of rank 0) is 0x'
}

@test "collectives are not for copies: refused, left out of a plan, and a point of a foreign plan says so" {
    run -64 copy 2 --op all_reduce
    grep -q 'transport copy has none of these operations' log
    plan 'collective all_gather 1024 1024 2 0 0-1' >plan.tsv
    copy 2 --plan plan.tsv || true
    column note points.tsv | grep -q 'transport copy has no all_gather: it copies between two GPUs'
    rm points.tsv
    copy 2 -b 4K -e 4K --pair-bytes 4K
    [ "$(column op points.tsv | sort -u | tr '\n' ' ')" = "pair_bibw pair_bw pair_latency sendrecv " ]
}

@test "two ranks on one GPU: refused, or said to be no fabric" {
    printf 'devices 1\n' >gpus.txt
    run -78 copy 2 --op pair_bw -b 4K -e 4K
    grep -q 'would use the same GPU' log
    copy 2 --op pair_bw -b 4K -e 4K --pair-bytes 4K --share-gpu
    sed -n 2p points.tsv | cut -c3- | jq -e '.shared_gpu'
    [ "$(column check points.tsv | sort -u)" = ok ]
}

@test "no GPU: exit 78 with the reason" {
    LD_LIBRARY_PATH='' run -78 copy 2 --op pair_bw -b 4K -e 4K
    grep -q 'libcuda' log
}

@test "run chains it all; a wrong option is named" {
    run -0 --separate-stderr railgauge run --transport copy --ranks 2 --no-verdict --no-plots --no-compute -o c "${quick[@]}" \
        -b 4K -e 16K --pair-bytes 16K
    jq -e '.transport == "copy" and (.tiers[0].curves.uni.points | length) > 0' c/matrix.json
    [ ! -e c/compute.tsv ]
    run -64 --separate-stderr railgauge run --transport copy --copy-engine dma -o d
    [[ $stderr == *'"dma" is neither ce nor sm'* ]]
}

@test "discover tries FABRIC handles where endpoints are GPUs: the verdict knows, topology.json keeps it" {
    export RAILGAUGE_NVML=$build/fake/libnvidia-ml.so.1
    [ -e "$RAILGAUGE_NVML" ] || skip "the stand-in for libnvidia-ml is not built"
    export FAKE_NVML=$BATS_TEST_DIRNAME/../fake/nvml/gb300.txt
    printf 'fabric not-permitted\n' >gpus.txt
    run -0 --separate-stderr ranks 2 "$probe" discover -o t.json
    [[ $output == *'bad: '*'memory with a FABRIC handle is not allocated'* ]]
    jq -e '.trials.rows[0][1:4] == [false, null, null] and (.trials.rows[0][5] | contains("IMEX"))' t.json
    printf 'fabric yes\n' >gpus.txt
    ranks 2 "$probe" discover -q -o t.json
    jq -e '.trials.rows == [[0, true, true, true, null, null]]' t.json
    FAKE_FAIL=cuMemImportFromShareableHandle:800 ranks 2 "$probe" discover -q -o t.json
    jq -e '.trials.rows[0][1:4] == [true, true, false]' t.json
}

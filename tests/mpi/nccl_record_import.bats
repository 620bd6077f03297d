#!/usr/bin/env bats
# nccl_record_import.bats - jobs of the stand-in for NCCL, recorded by the plugin and read by railgauge
# import: what was run comes back.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_stand_ins "devices 8"
    [ -e "$build/librailgauge-nccl.so" ] || skip "the plugin is not built"
    export NCCL_PROFILER_PLUGIN=$build/librailgauge-nccl.so RAILGAUGE_NCCL_DIR=$PWD/rec RAILGAUGE_NCCL_MB=4
}

# job RANKS WORDS...: a campaign of the stand-in, recorded
job() {
    local n=$1
    shift
    rm -rf rec ./*.tsv
    run ranks "$n" "$probe" probe -t nccl -n 8 -w 0 --epochs 1 --no-retest --max-run 60s "$@"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "collectives of four ranks, by the GPU's clock: groups, sizes, algorithm and number" {
    FAKE_NCCL_VERSION=22809 job 4 --op all_reduce,all_gather,reduce_scatter,broadcast -b 4K -e 64K -f 4
    railgauge import --nccl-profile rec --json -o c/points.tsv >answer 2>said
    cat said
    jq -e '.endpoints == 4 and .hosts == 1' answer
    jq -e '[.recorded.traffic[] | select(.ranks == 4 and .message == false) | .op] | unique ==
        ["all_gather", "all_reduce", "broadcast", "reduce_scatter"]' answer
    # Sizes are nccl-tests', though NCCL counts one rank's share.
    jq -e '[.recorded.traffic[] | select(.ranks == 4 and .op == ("all_gather", "reduce_scatter")) | .bytes] |
        index(4096) and index(16384) and index(65536)' answer
    jq -e '.recorded.traffic | all(.channels > 0 and (.algorithm != null or .message))' answer
    jq -e '.recorded.processes | length == 4 and all(.ended and .lost == 0)' answer
    ! grep -q "under way\|not whole\|overwritten" said
    awk -F'\t' '$5 == "all_gather" && $6 == 4 && $10 == 65536 { found = $11 >= 8 } END { exit !found }' c/points.tsv
}

@test "sends and receives are the all_to_all and the sendrecv that were asked for" {
    FAKE_NCCL_VERSION=22809 job 4 --op all_to_all,sendrecv -b 16K -e 16K
    railgauge import --nccl-profile rec --json -o c/points.tsv >answer 2>said
    cat said
    jq -e '[.recorded.traffic[] | select(.ranks == 4) | [.op, .bytes, .message]] |
        index([["all_to_all", 16384, false]]) and index([["sendrecv", 16384, false]])' answer
}

@test "every version of the interface is read; where NCCL tells no end, that is said" {
    for version in 22304 22403 22605 22707 22809 22907 23203; do
        FAKE_NCCL_VERSION=$version job 4 --op all_reduce -b 64K -e 64K
        rm -rf c
        run --separate-stderr railgauge import --nccl-profile rec -o c/points.tsv
        echo "$version: $status $stderr"
        if [ "$version" -lt 22605 ]; then
            [ "$status" -eq 65 ]
            [[ $stderr == *"no collective was recorded, nor in the other files, of which NCCL told the end: without proxies it does so from 2.26 on"* ]]
        else
            [ "$status" -eq 0 ]
        fi
    done
}

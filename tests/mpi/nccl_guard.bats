#!/usr/bin/env bats
# nccl_guard.bats - calls of NCCL that block run in threads of their own; operations that are timed do not.

bats_require_minimum_version 1.5.0
load helper

setup() { need_stand_ins "devices 8"; }

threads() { # N WORDS... - how many threads rank 0 starts when it measures N times
    local n=$1
    shift
    rm -f points.tsv count
    printf '#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK != 0 ] || export COUNT_THREADS=%s LD_PRELOAD=%s\nexec "$@"\n' \
        "$PWD/count" "$build/fake/libthreads.so" >one.sh
    chmod +x one.sh
    ranks 2 ./one.sh "$probe" probe -t nccl --hang-after 60s -b 8 -e 8 -n "$n" -w 0 --epochs 1 --no-retest \
        --op all_reduce,pair_bw --pair-bytes 64K --max-run 60s "$@" >&2
    [ "$(column stop points.tsv | sort -u)" = count ] || return 1
    cut -d ' ' -f 2 count | sort -n | tail -n 1 # the rank, and what stands beside it
}

@test "operations start no threads, however many there are" {
    [ -z "${RG_SAN:-}" ] || skip "the sanitizer wants to be loaded first"
    few=$(threads 1) many=$(threads 40)
    echo "$few with 1, $many with 40"
    [ "$few" -ge 5 ]
    [ "$many" -eq "$few" ]
    few=$(threads 1 --graph) many=$(threads 40 --graph)
    [ "$many" -eq "$few" ]
}

@test "a first operation that does not come back is left behind, and everything else is measured" {
    plan "isolated pair_latency 8 8 2 0 0>1" "isolated pair_latency 8 8 2 0 2>0" >plan.tsv
    RAILGAUGE_WATCH=off FAKE_FAULT=hang:1:1 run ranks 3 "$probe" probe --hang-after 1s -t nccl --plan plan.tsv -n 2 -w 0 --no-retest
    echo "$output"
    [ "$status" -eq 2 ]
    [ "$(column stop points.tsv | xargs)" = "failed count" ]
    [[ $(column note points.tsv) == *"is not done after "*" s"* ]]
}

#!/usr/bin/env bats
# nccl_faults.bats - what fails on one rank of a communicator is named on all, and everything that does
# not need that communicator is measured.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_stand_ins "devices 8"
    # Rank 1 is in all rounds but the first: how many operations a point takes depends on how fast they are,
    # and it is still in its first point when it begins its third one.
    plan "isolated pair_latency 8 8 2 0 2>0" "isolated pair_latency 8 64 8 0,1 0>1" \
        "collective all_reduce 64 64 2 0 0-2" "isolated pair_bw 64 64 2 0 1>2" >plan.tsv
}

faulty() { # FAULT WORDS...
    local fault=$1
    shift
    FAKE_FAULT=$fault run ranks 3 "$probe" probe -t nccl --plan plan.tsv -n 2 -w 0 --no-retest --max-run 60s "$@"
    echo "$output"
}

who() { echo "rank $1 (host $(hostname), GPU 0000:"; }
stops() { column stop points.tsv | xargs; }

@test "an asynchronous error: the rank whose own it is, not those that it took along" {
    for late in 0 0.3; do # when it knows of it, after the others do
        rm -f points.tsv
        faulty async:1:3:$late
        [ "$status" -eq 2 ]
        [[ $output == *"points.tsv: data were wrong in 0 of 7 points and "*" failed; first: $(who 1)"* ]]
        [[ $(stops) == count*failed* ]]
        paste <(column src points.tsv) <(column dst points.tsv) <(column stop points.tsv) <(column note points.tsv) >said
        grep -q "^2.0.count" said
        while IFS=$'\t' read -r _ _ stop note; do
            [ "$stop" != failed ] || [[ $note == "$(who 1)"*"injected fault (unhandled system error"* ]]
        done <said
    done
}

# took COMMAND... - its seconds, into $took.
took() {
    local from=$EPOCHREALTIME
    "$@"
    took=$((10#${EPOCHREALTIME/./} / 1000000 - 10#${from/./} / 1000000))
}

@test "a communicator that cannot be made: said at once, not after the others' patience" {
    took faulty "" # what starting takes here
    local start=$took
    for late in 0 0.3; do # its call returns so long after the others' calls
        rm points.tsv
        took faulty init:1:1:$late --hang-after 250s
        [ "$((took - start))" -lt 125 ]
        [ "$status" -eq 2 ]
        [ "$(stops)" = "count failed failed failed failed failed failed" ]
        [ "$(column note points.tsv | grep -c "^$(who 1).*injected fault")" -eq 6 ]
    done
}

@test "wrong data: rank, byte and source, and everything is measured" {
    faulty corrupt:1:1
    [ "$status" -eq 2 ]
    [[ $(stops) != *failed* ]]
    [[ $(column note points.tsv | grep -m 1 pair_latency) == "pair_latency of 8 bytes: rank 1 (host $(hostname)): byte "*" (block of rank 0) is 0x"* ]]
    paste <(column src points.tsv) <(column dst points.tsv) <(column check points.tsv) | grep -q "^2.0.ok"
}

@test "a GPU that does nothing any more: the rank whose it is says so, and the others go on" {
    RAILGAUGE_WATCH=off faulty stuck:1:30
    [ "$status" -eq 2 ]
    [[ $(stops) == count*failed* ]]
    [[ $(column note points.tsv | grep -m 1 -F "$(who 1)") == "$(who 1)"*"): the GPU does not answer" ]]
    paste <(column src points.tsv) <(column dst points.tsv) <(column stop points.tsv) | grep -q "^2.0.count"
}

@test "a GPU that is full and slow is not one that does not answer, before its work may rightly be over" {
    echo "serial yes" >>gpus.txt
    plan "collective all_reduce 201326592 201326592 2 0 0-1" >plan.tsv # which may take 8 s at least, on a busy machine as well
    for watch in on off; do
        rm -f points.tsv
        RAILGAUGE_WATCH=$([ $watch = on ] || echo off) FAKE_FAULT=slow:1:1:1.5 run ranks 2 "$probe" probe -t nccl \
            --plan plan.tsv -n 1 -w 0 --no-retest --no-check --max-run 60s --hang-after 1s
        echo "$output"
        [ "$status" -eq 0 ]
        [ "$(stops)" = count ]
    done
}

@test "a driver that fails in the middle: its words, its rank" {
    for what in cuEventRecordWithFlags cuMemAlloc_v2 cuStreamQuery cuGraphLaunch cuLaunchKernel; do
        printf '#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK != 1 ] || export FAKE_FAIL=%s:719:3\nexec "$@"\n' "$what" >one.sh
        chmod +x one.sh
        rm -f points.tsv
        run ranks 3 ./one.sh "$probe" probe -t nccl --plan plan.tsv -n 2 -w 0 --no-retest --max-run 60s \
            $([ $what != cuGraphLaunch ] || echo --graph)
        echo "$what: $output"
        [ "$status" -eq 2 ]
        [[ $output == *"first: $(who 1)"* || $output == *"first: "*"rank 1"* ]]
        [[ $(column note points.tsv) == *"$(who 1)"*"CUDA_ERROR_LAUNCH_FAILED"* ]]
        paste <(column src points.tsv) <(column dst points.tsv) <(column stop points.tsv) | grep -q "^2.0.count"
    done
}

@test "a rank that does not come back from a call, or dies: named, in time, and the finished points are kept" {
    local slowest=0
    for fault in hang:1:3 die:1:3; do
        rm -f points.tsv
        took faulty $fault --hang-after 2s
        slowest=$((took > slowest ? took : slowest))
        [ "$status" -eq 75 ] || [ "${fault%%:*}-$status" = die-137 ] # mpirun has its own word for who died
        [[ $output == *"rank 1 (host $(hostname), pid "*" 1 of 7 points are kept, --resume measures the rest"* ]]
        [ "$(stops)" = count ]
    done
    took faulty ""
    [ "$status" -eq 0 ]
    [ "$(stops)" = "count count count count count count count" ]
    [ "$((slowest - took))" -lt 20 ]
}

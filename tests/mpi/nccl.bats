#!/usr/bin/env bats
# nccl.bats - transport nccl against stand-ins for the driver and for NCCL: every operation moves the
# right bytes, in every form; who has which GPU; the whole chain.

bats_require_minimum_version 1.5.0
load helper

setup() { need_stand_ins "devices 8"; }

every_op="all_gather all_reduce all_to_all broadcast pair_bibw pair_bw pair_latency reduce reduce_scatter sendrecv"
# 7 bytes to 28 KiB in steps that are not powers of two: odd blocks, blocks of no whole elements.
sizes=(-b 7 -e 28K -f 16 -n 2 -w 0 --epochs 1 --no-retest --max-run 60s --pair-bytes 64K --op "collectives,pairs")

nccl_is_right() { # RANKS WORDS...
    local n=$1
    shift
    run ranks "$n" "$probe" probe -t nccl "${sizes[@]}" "$@"
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(column op points.tsv | sort -u | xargs)" = "$every_op" ]
    [ "$(column check points.tsv | sort -u)" = ok ]
    [ "$(column stop points.tsv | sort -u)" = count ]
}

# bats test_tags=nightly
@test "every op is verified on 2 ranks" { nccl_is_right 2; }
@test "every op is verified on 3 ranks" { nccl_is_right 3; }
@test "every op is verified on 8 ranks" { nccl_is_right 8 -f 128 --pairs shift; }
# bats test_tags=nightly
@test "in place" { nccl_is_right 4 --in-place; }
@test "replayed as CUDA graphs" { nccl_is_right 3 --graph; }
# bats test_tags=nightly
@test "memory of the library's, registered" { nccl_is_right 3 --nccl-mem --register buffer; }
@test "symmetric windows: the kernels that ran are in the topology, and an ordinary one is named" {
    plan "collective all_reduce 64 1024 16 0 0-1" >plan.tsv
    symmetric=(-t nccl --plan plan.tsv -n 1 -w 1 --no-retest --nccl-mem --register symmetric)
    run ranks 2 "$probe" probe "${symmetric[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *"ordinary kernels"* ]]
    [ "$(jq -c '[.nccl.choices.rows[] | .[3:5]] | unique' topology.json)" = '[["symmetric","AllReduce_LL"]]' ]
    [ "$(column registration points.tsv | sort -u)" = symmetric ]
    rm points.tsv
    run ranks 2 "$probe" probe "${symmetric[@]}" -d uint32
    [ "$status" -eq 0 ]
    [[ $output == *"--register symmetric: all_reduce ran ordinary kernels at 2 of 2 sizes, such as tree ll at 64 B a rank"* ]]
}

@test "symmetric windows, in place" { nccl_is_right 3 --nccl-mem --register symmetric --in-place; }
# bats test_tags=nightly
@test "the same memory again and again" { nccl_is_right 3 --same-buffer; }
@test "without kernels the host verifies" { RAILGAUGE_KERNELS=$PWD/none nccl_is_right 3; }
@test "a library from before all_to_all: sends and receives" { FAKE_NCCL_VERSION=22700 nccl_is_right 3; }
# bats test_tags=nightly
@test "the oldest library that will do" { FAKE_NCCL_VERSION=21903 nccl_is_right 2; }

@test "every type and every reduction, on the GPU and on the host" {
    export sizes=(-b 7 -e 7K -f 32 -n 1 -w 0 --epochs 1 --no-retest --max-run 60s --op "all_reduce,reduce_scatter,reduce")
    every_op="all_reduce reduce reduce_scatter"
    for how in "int8 prod" "uint64 min" "half avg" "bf16 sum" "fp8e4m3 max" "fp8e5m2 avg" "double prod"; do
        read -r type redop <<<"$how"
        rm -f -- *.tsv
        nccl_is_right 3 -d "$type" --redop "$redop"
    done
    rm -f -- *.tsv
    RAILGAUGE_KERNELS=$PWD/none nccl_is_right 3 -d bf16 --redop avg
}

@test "reductions add bfloat16 unless told otherwise; a campaign has one type" {
    plan "collective all_reduce 64 1024 16 0 0-1" "collective all_gather 64 64 16 0 0-1" >plan.tsv
    ranks 2 "$probe" probe -t nccl --plan plan.tsv -n 2 -w 1 --no-retest
    [ "$(paste <(column op points.tsv) <(column dtype points.tsv) <(column redop points.tsv) <(column registration points.tsv) \
        <(column check points.tsv) | sort -u | tr '\t\n' ' ;')" = "all_gather uint8 - none ok;all_reduce bfloat16 sum none ok;" ]
    plan "collective all_reduce 64 4096 4 0 0-1" >plan.tsv
    run ranks 2 "$probe" probe -t nccl --plan plan.tsv -n 2 -w 1 --no-retest -o more.tsv -d fp32
    [ "$status" -eq 0 ]
    [ "$(column dtype more.tsv | sort -u)" = float32 ]
    head -n 4 more.tsv >cut.tsv
    run ranks 2 "$probe" probe -t nccl --plan plan.tsv -n 2 -w 1 --no-retest -o cut.tsv
    [ "$status" -eq 65 ]
    [[ $output == *"all_reduce of float32 sum and of bfloat16 sum: times of different types"* ]]
    run ranks 2 "$probe" probe -t nccl --plan plan.tsv -n 2 -w 1 --no-retest -o cut.tsv -d fp32
    [ "$status" -eq 0 ]
}

@test "one flipped bit is named: op, rank, host, byte, source; the code says that it could not be judged" {
    for kernels in there none; do
        [ $kernels = there ] || export RAILGAUGE_KERNELS=$PWD/none
        rm -f -- *.tsv
        RAILGAUGE_FLIP=all_gather:1:2050:3,all_reduce:1:4095:3 run ranks 2 "$probe" probe -t nccl -b 4K -e 4K -n 1 \
            -w 0 --epochs 1 --no-retest --op all_gather,all_reduce
        echo "$output"
        [ "$status" -eq 2 ]
        [[ $output == *"points.tsv: data were wrong in 2 of 2 points and 0 failed; first: all_gather of 4096 bytes: rank 1 "* ]]
        [[ $(column note points.tsv | head -n 1) =~ ^"all_gather of 4096 bytes: rank 1 (host $(hostname)): byte 2050 (block of rank 1) is 0x"(..)", expected 0x"(..)$ ]]
        [ $((0x${BASH_REMATCH[1]} ^ 0x${BASH_REMATCH[2]})) -eq 8 ]
        [[ $(column note points.tsv | tail -n 1) == *"element 2047 (bfloat16, sum over 2 ranks) is 0x"* ]]
        rm -f -- *.tsv
        RAILGAUGE_FLIP=reduce:0:8:0 run ranks 2 "$probe" probe -t nccl -b 4K -e 4K -n 1 -w 0 --epochs 1 --op reduce -d half
        [[ $(column note points.tsv) =~ "element 4 (float16, sum over 2 ranks) is 0x"(....)", expected 0x"(....)$ ]]
        [ $((0x${BASH_REMATCH[1]} ^ 0x${BASH_REMATCH[2]})) -eq 1 ]
    done
}

# places WORDS... - how often an all_reduce of 64 bytes is called, in how many places of its buffer, how far apart.
places() {
    rm -f -- *.tsv log.*
    plan "collective all_reduce 64 1024 16 0 0-1" >plan.tsv
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL NCCL_DEBUG_FILE=$PWD/log.%p ranks 2 "$probe" probe -t nccl --plan plan.tsv \
        -n 40 -w 2 --no-retest --max-run 60s "$@" >&2
    [ "$(column check points.tsv | sort -u)" = ok ] || return 1
    cat "$(printf '%s\n' log.* | head -n 1)" | awk '/AllReduce: .* count 32 / { for (i = 1; i < NF; i++) if ($i == "sendbuff") print $(i + 1) }' >at
    calls=$(wc -l <at) places=$(sort -u at | wc -l) reach=$(($(sort at | tail -n 1) - $(sort at | head -n 1)))
}

@test "each operation begins where the one before ended, within the largest message; graphs hold some" {
    places
    echo "$calls calls, $places places, $reach bytes apart"
    [ "$calls" -ge 43 ] # 2 to warm up, 40, the check; one more before each batch where they are short
    [ "$places" -eq 16 ]
    [ "$reach" -eq $((1024 - 64)) ]
    places --same-buffer
    [ "$places" -eq 1 ]
    places --graph
    echo "graphs: $calls calls, $places places"
    [ "$places" -ge 2 ] && [ "$reach" -le $((1024 - 64)) ]
    # The first one, the check, and those that were recorded: 20 in the first graph, where no time is known.
    [ "$calls" -ge 22 ] && [ "$calls" -le $((2 + 20 * 4)) ]
}

@test "what connecting cost is told apart, and evicted communicators are made anew" {
    run ranks 3 "$probe" probe -t nccl -b 8 -e 8 -n 1 -w 0 --epochs 3 --no-retest --op pair_latency,all_reduce --pool 1
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"4 communicators: made in "*" s (median; slowest "*" s, ranks "*"), first operation "*" s (median)"* ]]
    [ "$(column members connections.tsv | sort | xargs)" = "0,2 0-1 0-2 1-2" ]
    [ "$(column made connections.tsv | sort -n | tail -n 1)" -ge 3 ]
    [ "$(column first_op connections.tsv | sort -u | xargs)" = "all_reduce pair_latency" ]
    awk -F'\t' 'NR > 1 && !($4 > 0 && $4 < 30 && $6 > 0 && $6 < 30) { bad = 1 } END { exit bad }' connections.tsv
    rm -f -- *.tsv
    ranks 3 "$probe" probe -t nccl -b 8 -e 8 -n 1 -w 0 --epochs 3 --no-retest --op pair_latency,all_reduce
    [ "$(column made connections.tsv | sort -u)" = 1 ] # sixteen are kept
}

@test "two ranks on one GPU are refused with both named, unless it is asked for" {
    echo "devices 1" >gpus.txt
    run ranks 3 "$probe" probe -t nccl -b 8 -e 8 -n 1 --op all_reduce
    [ "$status" -eq 78 ]
    [[ $output == *"ranks 0 and 1 (host $(hostname)) would use the same GPU 0000:"*": start one rank a GPU, or try things out with --share-gpu"* ]]
    run ranks 3 "$probe" probe -t nccl -b 8 -e 64 -n 1 --epochs 1 --op all_reduce,pairs --share-gpu --pair-bytes 4K --no-retest
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(column check points.tsv | sort -u)" = ok ]
    jq -e '.unseen[] | select(.why == "several ranks share one GPU: not a fabric measurement")' topology.json
    sed -n 2p points.tsv | cut -c 3- | jq -e '.shared_gpu == "several ranks share one GPU: not a fabric measurement" and
        .environment_set.NCCL_HOSTID == "railgauge-rank-0" and (.environment | has("NCCL_HOSTID") | not)'
    railgauge fit -q --no-verdict -o matrix.json topology.json plan.tsv points.tsv
    railgauge show matrix.json findings | grep -q "3 ranks, 0 to 2, share one GPU (0000:.*): not a fabric measurement"
}

@test "ranks take the GPUs of their place, whatever the launcher calls it" {
    sh=$PWD/env.sh
    printf '#!/bin/sh\nexport SLURM_LOCALID=$((3 - OMPI_COMM_WORLD_LOCAL_RANK))\nunset OMPI_COMM_WORLD_LOCAL_RANK\nexec "$@"\n' >"$sh"
    chmod +x "$sh"
    ranks 4 "$sh" "$probe" discover -t nccl -q -o slurm.json
    ranks 4 "$probe" discover -t nccl -q -o ompi.json
    bus() { jq -r '.endpoints.rows as $r | .endpoints.columns | index("busid") as $i | $r[] | .[$i]' "$1"; }
    [ "$(bus ompi.json | sort -u | wc -l)" -eq 4 ]
    [ "$(bus slurm.json)" = "$(bus ompi.json | tac)" ]
    printf '#!/bin/sh\nunset OMPI_COMM_WORLD_LOCAL_RANK\nexec "$@"\n' >"$sh" # by host
    ranks 4 "$sh" "$probe" discover -t nccl -q -o none.json
    [ "$(bus none.json)" = "$(bus ompi.json)" ]
}

@test "memory that NCCL does not register is told, and a communicator that the user made nonblocking" {
    one=(-b 8 -e 8 -n 1 --op all_reduce)
    NCCL_WIN_ENABLE=0 NCCL_LOCAL_REGISTER=0 run ranks 2 "$probe" probe -t nccl "${one[@]}" --nccl-mem --register symmetric
    [ "$status" -eq 0 ]
    [[ $output == *"NCCL registered no memory: it has neither symmetric windows nor NCCL_LOCAL_REGISTER here"* ]]
    NCCL_LOCAL_REGISTER=0 run ranks 2 "$probe" probe -t nccl "${one[@]}" -o two.tsv --register buffer
    [ "$status" -eq 0 ]
    [[ $output == *"ncclCommRegister is switched off (NCCL_LOCAL_REGISTER) here"* ]]
    run ranks 2 "$probe" probe -t nccl "${one[@]}" -o three.tsv --register buffer
    [ "$status" -eq 0 ]
    [[ $output != *"registered no memory"* ]]
    NCCL_COMM_BLOCKING=0 run ranks 2 "$probe" probe -t nccl "${one[@]}" -o four.tsv
    [ "$status" -eq 78 ]
    [[ $output == *"wants NCCL_COMM_BLOCKING=1, but the environment says NCCL_COMM_BLOCKING=0"* ]]
    FAKE_NCCL_CONF=NCCL_COMM_BLOCKING=0 run ranks 2 "$probe" probe -t nccl "${one[@]}" -o five.tsv
    [ "$status" -eq 2 ]
    [[ $(column note five.tsv) == *"NCCL operation in progress: NCCL_COMM_BLOCKING=0 made the communicator a nonblocking one"* ]]
}

@test "libraries that cannot do it are named" {
    FAKE_NCCL_VERSION=21803 run ranks 2 "$probe" probe -t nccl --op all_reduce
    [ "$status" -eq 78 ]
    [[ $output == *"is NCCL 2.18.3; 2.19 or newer is needed"* ]]
    printf '#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] || export FAKE_NCCL_VERSION=22700\nexec "$@"\n' >mixed.sh
    chmod +x mixed.sh
    run ranks 2 ./mixed.sh "$probe" probe -t nccl --op all_reduce
    [ "$status" -eq 78 ]
    [[ $output == *"rank 0 has NCCL 2.28.9, but rank 1 has NCCL 2.27.0"* ]]
    FAKE_NCCL_VERSION=22605 run ranks 2 "$probe" probe -t nccl -b 8 -e 8 -n 1 --op all_reduce --nccl-mem --register symmetric
    [ "$status" -eq 2 ]
    [[ $(column note points.tsv) == *"NCCL before 2.27 has no windows (--register symmetric)" ]]
    LD_LIBRARY_PATH='' run ranks 2 "$probe" probe -t nccl --op all_reduce
    [ "$status" -eq 78 ]
    [[ $output == *"libcuda.so.1: cannot open"* ]]
    NCCL_PROTO=LL run ranks 2 "$probe" probe -t nccl --op all_reduce --proto simple
    [ "$status" -eq 78 ]
    [[ $output == *"--proto wants NCCL_PROTO=Simple, but the environment says NCCL_PROTO=LL"* ]]
}

@test "more memory than the GPU has becomes a failed point with its reason" {
    plan "collective all_reduce 1125899906842624 1125899906842624 2 0 0-1" "collective all_reduce 8 8 2 0 0-1" \
        "collective all_reduce 7 7 2 0 0-1" >plan.tsv
    run ranks 2 "$probe" probe -t nccl --plan plan.tsv -n 1
    echo "$output"
    [ "$status" -eq 2 ]
    [ "$(column stop points.tsv | xargs)" = "failed count count" ]
    [[ $(column note points.tsv | head -n 1) == "rank 0 (host $(hostname), GPU 0000:"*"): a buffer of 1.00 PiB: "* ]]
    rm points.tsv
    run ranks 2 "$probe" probe -t nccl --plan plan.tsv -n 1 --nccl-mem
    [[ $(column note points.tsv | head -n 1) == *"a buffer of 1.00 PiB: ncclMemAlloc of "* ]]
}

@test "a sweep: each combination in its file, the best per size, what NCCL refuses, the tuner's configuration" {
    run ranks 4 "$probe" probe -t nccl -b 64 -e 64K -f 32 -n 2 -w 0 --epochs 1 --no-retest --max-run 60s \
        --op all_reduce,all_gather,all_to_all --sweep
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(find sweep -name '*-*.tsv' | wc -l)" -eq 21 ]
    [[ $output == *"all_gather  4 ranks, 1 node"* ]]
    [ "$(column stop sweep/Ring-LL128.tsv | sort -u)" = count ]
    # Trees only reduce to all: the rest of the ladder is refused as the first was.
    [ "$(paste <(column op sweep/Tree-Simple.tsv) <(column stop sweep/Tree-Simple.tsv) | sort -u | xargs)" = "all_gather failed all_reduce count" ]
    run railgauge tune . --csv tuner.conf
    [ "$status" -eq 0 ]
    [[ $output == *"refused by NCCL:"*"all_gather on 4 ranks, 1 node: Tree LL, LL128, Simple;"*"for instance rank "*"no algorithm/protocol available for function AllGather"* ]]
    grep -qE '^allgather,0,[0-9]+,(ring|pat|nvls),(ll|ll128|simple),-1,1,4,-1,-1$' tuner.conf
    grep -qE '^allreduce,[0-9]+,4294967295,[a-z_]+,(ll|ll128|simple),-1,1,4,-1,-1$' tuner.conf
    run grep -c all_to_all tuner.conf sweep/plan.tsv
    [ "$(cut -d: -f2 <<<"$output" | xargs)" = "0 0" ]
    mkdir empty
    run railgauge tune empty
    [ "$status" -eq 66 ]
    [[ $output == *"empty holds no sweep"* ]]
}

@test "only the algorithm that is asked for is used, and its refusal is the point's reason" {
    run ranks 2 "$probe" probe -t nccl -b 8 -e 64 -f 8 -n 1 -w 0 --epochs 1 --op all_reduce,all_gather --algo tree --no-retest --max-run 60s
    echo "$output"
    [ "$status" -eq 2 ]
    [ "$(paste <(column op points.tsv) <(column stop points.tsv) | sort | uniq -c | xargs)" = "2 all_gather failed 2 all_reduce count" ]
}

@test "an algorithm is not asked of a library that would take Ring instead and not say so" {
    local one=(-b 64 -e 64 -n 1 -w 0 --epochs 1 --no-retest)
    export FAKE_NCCL_VERSION=22304
    for how in "--sweep:--sweep" "--algo=tree,nvls:--algo without ring"; do
        run ranks 2 "$probe" probe -t nccl "${one[@]}" --op all_gather "${how%%:*}"
        [ "$status" -eq 78 ]
        [[ $output == *"${how#*:} needs NCCL 2.24 or newer: NCCL 2.23.4 takes Ring, and does not say so"* ]]
        [ ! -e points.tsv ]
    done
    ranks 2 "$probe" probe -t nccl "${one[@]}" --op all_gather --algo ring --proto ll
    [ "$(column stop points.tsv)" = count ]
}

@test "run takes nccl where there are GPUs, through to matrix and prediction" {
    printf 'devices 8\nname NVIDIA H200\n' >gpus.txt
    run railgauge run --no-verdict -o c --ranks 4 -b 64 -e 256K -f 8 -n 4 -w 1 --epochs 2 --max-run 60s --no-plots --pair-bytes 64K \
        --gemm bf16:1024x512x256 --device-bytes 1M
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *": 4 endpoints, "*" rounds over nccl: about "* ]]
    [ "$(jq -r .transport c/matrix.json)" = nccl ]
    railgauge predict c/matrix.json --model llama3.1-8b --layout dp_shard=4 --flops 400e12 | grep -q "llama3.1-8b"
    [ -s c/connections.tsv ]
    jq -e '.nccl.comms | length > 0' c/topology.json
    LD_LIBRARY_PATH='' run railgauge run -o d --ranks 2 -b 64 -e 64 -n 1 --epochs 1 --no-plots --op all_reduce
    [ "$status" -eq 0 ]
    [[ $output == *" round over mpi"* ]]
    # Where no driver of NVIDIA is, nobody expects GPUs: why is kept, and not said.
    jq -e '.provenance.transport_why | startswith("the CUDA driver cannot be loaded: libcuda.so.1: ")' d/topology.json
    [ -e /proc/driver/nvidia ] || [[ $output != *CUDA* ]]
    LD_LIBRARY_PATH='' run railgauge run -t nccl -o e --ranks 2 -b 64 -e 64 -n 1 --epochs 1 --no-plots --op all_reduce
    [ "$status" -eq 78 ]
    run railgauge run -t nccl -o f --ranks 2 --dry-run --share-gpu --algo ring
    [ "$status" -eq 0 ]
    [[ $output == *"probe -t nccl --dry-run"*"--algo=ring"*"--share-gpu"* ]]
}

@test "GPUs that are left out where NVIDIA's driver is: why is said" {
    [ -d /proc/driver ] && unshare -m mount -t tmpfs none /proc/driver 2>/dev/null || skip "this machine does not allow mounts"
    LD_LIBRARY_PATH='' run -0 unshare -m sh -c 'mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && exec "$@"' - \
        railgauge run -o d --ranks 2 -b 64 -e 64 -n 1 --epochs 1 --no-plots --op all_reduce
    [ "$(grep -c 'warning: GPUs are left out, transport mpi: the CUDA driver cannot be loaded: libcuda.so.1: ' <<<"$output")" -eq 1 ]
}

@test "--topology: the user's file is only read; what NCCL built goes beside the points, and once more into that file" {
    local how=(-t nccl -b 8 -e 8 -n 1 -w 0 --epochs 1 --no-retest --op all_reduce)
    mkdir mine out
    ranks 2 "$probe" discover -t nccl -o mine/topology.json
    jq -e 'has("nccl") | not' mine/topology.json
    cp -p mine/topology.json before.json
    ranks 2 "$probe" probe "${how[@]}" --topology mine/topology.json -o out/points.tsv
    cmp mine/topology.json before.json
    jq -e '.nccl.comms | length > 0' out/topology.json
    jq -e --slurpfile mine before.json '.endpoints == $mine[0].endpoints and .hosts == $mine[0].hosts' out/topology.json
    # The campaign's own file, which it may write: without the key, as `railgauge run` hands it over.
    cp before.json out/topology.json
    ranks 2 "$probe" probe "${how[@]}" --topology out/topology.json -o out/points.tsv
    jq -e '.nccl.comms | length > 0' out/topology.json
}

@test "a sweep by a plan of another folder" {
    mkdir other here
    plan "collective all_reduce 64 64 2 0 0-1" >other/plan.tsv
    run ranks 2 "$probe" probe -t nccl --plan other/plan.tsv -n 1 -w 0 --no-retest --sweep -o here/points.tsv
    [ "$status" -eq 0 ]
    [ -s here/sweep/Ring-LL.tsv ]
}

# sys DIR NODE... - a /sys in which GPU i (by the stand-in's bus ids) is at that NUMA node, whose core is i.
sys() {
    local at=$1 i=0 bus=(0000:1b:00.0 0000:43:00.0) node
    shift
    for node; do
        mkdir -p "$at/bus/pci/devices/${bus[i]}"
        echo "$node" >"$at/bus/pci/devices/${bus[i]}/numa_node"
        echo "$i" >"$at/bus/pci/devices/${bus[i]}/local_cpulist"
        i=$((i + 1))
    done
}

@test "each rank is bound to the NUMA node of its GPU before buffers are there, unless told otherwise" {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    sys one 0 1
    bound=(-t nccl -b 8 -e 8 -n 1 -w 0 --epochs 1 --no-retest --op all_reduce)
    RAILGAUGE_SYS=$PWD/one run ranks 2 "$probe" probe "${bound[@]}"
    [ "$status" -eq 0 ]
    [ "$(grep -c 'ranks of a host are bound: 0 to NUMA node 0, 1 to NUMA node 1$' <<<"$output")" -eq 1 ]
    [ "$(jq -r .provenance.binding topology.json)" = "0 to NUMA node 0, 1 to NUMA node 1" ]
    rm points.tsv
    RAILGAUGE_SYS=$PWD/one run ranks 2 "$probe" probe "${bound[@]}" --bind none
    [ "$status" -eq 0 ]
    [[ $output != *NUMA* ]]
    rm points.tsv
    sys blind -1 -1
    RAILGAUGE_SYS=$PWD/blind run ranks 2 "$probe" probe "${bound[@]}"
    [ "$status" -eq 0 ]
    [[ $output != *NUMA* ]]
    RAILGAUGE_SYS=$PWD/blind run ranks 2 "$probe" probe "${bound[@]}" --bind device
    [ "$status" -eq 78 ]
    [[ $output == *"--bind device: the kernel names no NUMA node of bus/pci/devices/0000:"* ]]
    # the launcher leaves rank 1 no core of its GPU
    RAILGAUGE_SYS=$PWD/one run ranks 2 taskset -c 0 "$probe" probe "${bound[@]}" --bind device
    [ "$status" -eq 78 ]
    [[ $output == *"0000:43:00.0 (host $(hostname)) is at NUMA node 1, of which this rank may use no core"* ]]
}

@test "hosts that bind their ranks differently are named" {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    sys a 0 1
    sys b 1 1
    unshare --uts true 2>/dev/null || skip "host names cannot be had here (unshare --uts)"
    cat >rank <<'END'
#!/bin/sh
node=$((OMPI_COMM_WORLD_RANK / 2))
export RAILGAUGE_SYS=$PWD/$([ $node = 0 ] && echo a || echo b) NODE=n$node OMPI_COMM_WORLD_LOCAL_RANK=$((OMPI_COMM_WORLD_RANK % 2))
exec unshare --uts sh -c 'hostname $NODE; exec "$0" "$@"' "$@"
END
    chmod +x rank
    run ranks 4 ./rank "$probe" probe -t copy -b 8 -e 8 -n 1 -w 0 --epochs 1 --no-retest --op pair_bw --hang-after 2s
    [[ $output == *"hosts bind their ranks differently: n0 binds 0 to NUMA node 0, 1 to NUMA node 1; n1 binds 0-1 to NUMA node 1"* ]]
}

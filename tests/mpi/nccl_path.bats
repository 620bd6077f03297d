#!/usr/bin/env bats
# nccl_path.bats - what NCCL built is read back from its log, and --path is proven: the stand-in for
# NCCL writes the log of a machine that a text describes.  Ranks 0-3 are on host n0, 4-7 on n1.

bats_require_minimum_version 1.5.0

setup() {
    load helper
    need_mpi
    [ -e "$build/fake/libnccl.so.2" ] || skip "the stand-ins for NCCL and the driver are not built"
    [ -z "${RG_SAN:-}" ] || skip "the stand-ins are loaded into a program without sanitizers"
    unshare -u true 2>/dev/null || skip "unshare -u is not allowed here"
    cd "$BATS_TEST_TMPDIR" || return 1
    unset "${!NCCL_@}"
    printf 'devices 4\nname Fake H200\n' >gpu
    cat >on_host <<'SH'
#!/bin/sh
exec unshare -u sh -c 'hostname n$((OMPI_COMM_WORLD_RANK / 4)); exec "$@"' sh "$@"
SH
    chmod +x on_host
    machine
}

# machine LINE... - two hosts of four GPUs and two HCAs, and these lines.
machine() {
    {
        printf 'host 0-3 n0\nhost 4-7 n1\nchannels 4\nsocket eth0:10.0.0.1<0>\n'
        printf '%s\n' "$@"
    } >story
}
ib=(nic\ mlx5_0:1/IB nic\ mlx5_1:1/IB)

fakes() {
    env LD_LIBRARY_PATH="$build/fake" FAKE_GPU="$PWD/gpu" FAKE_NCCL="$PWD/story" "$@"
}

# campaign [OPTION...] - a few points on transport nccl.
campaign() {
    mkdir -p c
    fakes timeout 300 mpirun -n 8 --oversubscribe --bind-to none --mca btl self,tcp \
        --mca btl_tcp_if_include lo --mca mpi_yield_when_idle 1 ./on_host railgauge-probe probe \
        -t nccl --op all_reduce -b 64K -e 64K -n 2 -w 1 -o c/points.tsv "$@"
}

nccl() {
    jq -rc ".nccl.$1" "${2:-c/topology.json}"
}

@test "a path that was used is good, and the profile is kept beside the points" {
    machine "${ib[@]}" 'clique 0-7'
    run campaign --path mnnvl
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(nccl version)" = 2.28.9+cuda13.0 ]
    [ "$(nccl 'seats.rows | length')" -eq 8 ]
    [ "$(nccl 'links.rows | map(.[3]) | unique')" = '["P2P","P2P/MNNVL"]' ]
    [ "$(nccl 'comms.rows | map(.[11]) | max_by(length)')" = '[0,1,2,3,4,5,6,7]' ]
    [ "$(nccl 'rings.rows | map(.[1] | length) | max')" -eq 8 ]
    [ "$(nccl 'gpus.rows | length')" -gt 0 ]
}

@test "asked mnnvl, used the network on four ranks: named, 78, and the points are kept" {
    machine "${ib[@]}" 'clique 0-7' 'via 4-7 4-7 NET/IB/0/GDRDMA'
    run campaign --path mnnvl
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"asked mnnvl, used NET/IB on ranks 4-7"* ]]
    [ "$(grep -c all_reduce c/points.tsv)" -gt 0 ]
    [[ $(nccl findings) == *"ranks 4-7: host memory or network within the host"* ]]
}

@test "InfiniBand and RoCE are told apart, and GPUDirect RDMA that is off is a finding" {
    machine "${ib[@]}" 'nogdr 4-7'
    run campaign --path ib
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $(nccl findings) == *"no GPUDirect RDMA on host n1"* ]]
    rm -r c
    run campaign --path roce
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"asked roce, used NET/IB on InfiniBand on ranks 0-7"* ]]
}

@test "a path within a host does not leave it" {
    machine "${ib[@]}"
    run campaign --path nvlink
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"asked nvlink, used NET/IB on ranks 0, 3, 4"* ]]
}

@test "connections that are made late are of the pair that made them, not of the newest one" {
    # Rank 0 receives from 1 on its host, then works with 4 on the other one, then sends to 1.
    machine "${ib[@]}"
    local round ranks
    printf '# railgauge-plan 1\nround\tstage\top\tbytes_from\tbytes_to\tfactor\tepochs\tgroups\n' >plan.tsv
    for round in "pair_bw 1>0" "pair_bw 0>4" "pair_bibw 1>0"; do
        printf '%s\tisolated\t%s\t8\t8\t2\t0\t%s\n' "$((ranks++))" "${round% *}" "${round#* }" >>plan.tsv
    done
    run campaign --plan plan.tsv --no-retest
    echo "$output"
    [ "$status" -eq 0 ]
    # The endpoints of each link, and what carries it.
    jq -r '.nccl | .comms.rows as $comm | (.comms.columns | index("endpoints")) as $e |
        .links.columns as $c | .links.rows[] | [$comm[.[$c | index("comm")]][$e][.[$c | index("from")], .[$c | index("to")]],
            .[$c | index("via")]] | map(tostring) | join(" ")' c/topology.json | sort -u >links
    cat links
    [ "$(<links)" = $'0 1 P2P\n0 4 NET/IB\n1 0 P2P' ]
}

@test "sockets: proven; with a log of the user's own nothing is" {
    run campaign --path tcp
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(nccl 'seats.rows[0][1]')" = Socket ]
    rm -r c
    NCCL_DEBUG_FILE=$PWD/mine run campaign --path tcp
    echo "$output"
    [ "$status" -eq 2 ]
    [[ $output == *"NCCL_DEBUG_FILE=$PWD/mine: the log goes there: what was used cannot be read back"* ]]
    [[ $output == *"asked tcp, but the log of NCCL names no connection of ranks 0-7: not proven"* ]]
}

@test "a variable of the user's that a path needs otherwise is a conflict, both named" {
    NCCL_SHM_DISABLE=0 run campaign --path tcp
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"--path tcp wants NCCL_SHM_DISABLE=1, but the environment says NCCL_SHM_DISABLE=0"* ]]
    [ ! -e c/points.tsv ]
}

@test "a plugin's network: proven by its name, and another one is named" {
    machine 'plugin gIB' "${ib[@]}"
    run campaign --path plugin:gib
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(nccl 'links.rows | map(.[3]) | unique')" = '["NET/plugin"]' ]
    rm -r c
    run campaign --path ib # NCCL_NET=IB passes the plugin over
    [ "$status" -eq 0 ]
    rm -r c
    machine "${ib[@]}"
    run campaign --path plugin
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"asked plugin, used NET/IB on ranks 0-7"* ]]
    run campaign --path plugin:
    [ "$status" -eq 64 ]
    [[ $output == *'no path "plugin:"'* ]]
}

# rack - the topology of a host whose four GPUs have an HCA each, in c: what was discovered, and the HCAs.
rack() {
    mkdir -p c
    fakes mpirun -n 4 --oversubscribe --bind-to none railgauge-probe discover -t nccl -q -o bare.json
    jq 'del(.checksum) | .nics = {columns: ["host", "name", "busid", "link_layer", "rate_Bps", "up", "rdma", "numa", "source"],
            rows: [range(4) | [0, "mlx5_\(.)", "0001:0\(.):00.0", "infiniband", 5e10, true, true, null, "user"]]} |
        (.endpoints.columns | index("nic")) as $n | .endpoints.rows |= [to_entries[] | .key as $k | .value | .[$n] = $k]' bare.json >c/topology.json
    railgauge seal c/topology.json
}
run_rack() {
    fakes railgauge run --resume -o c -t nccl --ranks 4 --op pair_bw -b 64K -e 64K --pair-bytes 64K -n 2 -w 1 \
        --epochs 1 --no-retest --no-compute --no-plots --no-verdict "$@"
}

@test "one host: run starts a second pass through the HCAs, whatever keeps NVLink otherwise" {
    machine nic\ mlx5_{0..3}:1/IB 'host 0-3 n0' 'clique 0-3'
    rack
    export NCCL_MNNVL_ENABLE=1 NCCL_CUMEM_ENABLE=1
    run run_rack --path mnnvl
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(awk -F'\t' '/^[0-9]/ { print $4 ~ /^nic/ ? "nic" : "nvlink" }' c/points.tsv | uniq | xargs)" = "nvlink nic" ]
    [ "$(nccl 'links.rows | map(.[3]) | unique')" = '["P2P"]' ] # what the first pass built
    [ -s c/connections.tsv ] && [ -s c/connections-nics.tsv ]
    # cut in the second pass: the first is not begun again, nor its path proven once more
    head -n -3 c/points.tsv >less && mv less c/points.tsv
    run -0 run_rack --path mnnvl
    [[ $output != *"asked mnnvl"* ]]
    [ "$(nccl 'links.rows | map(.[3]) | unique')" = '["P2P"]' ]
    [ "$(jq -r '.tiers[-1].coverage.measured_pairs' c/matrix.json)" -eq 6 ]
}

@test "one host whose jobs use a plugin: the second pass goes through the plugin too" {
    machine 'plugin gIB' nic\ mlx5_{0..3}:1/RoCE 'host 0-3 n0'
    rack
    run run_rack
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(awk -F'\t' '/^[0-9]/ { print $4 ~ /^nic/ ? "nic" : "nvlink" }' c/points.tsv | uniq | xargs)" = "nvlink nic" ]
    rm -r c
    machine 'plugin gIB' nic\ mlx5_{0..3}:1/RoCE 'host 0-3 n0' 'via 0-3 0-3 SHM/direct/direct'
    rack
    run run_rack
    [ "$status" -eq 78 ]
    [[ $output == *"asked plugin:gIB, used SHM on ranks 0-3"* ]]
}

@test "HCAs that NCCL does not take: said, and what NVLink does stands" {
    machine 'host 0-3 n0'
    rack
    run run_rack # how the host's memory scatters is not looked at
    echo "$output"
    [[ $output == *"no pair got an answer through the NICs: rank "*"Failed to initialize any NET plugin"* ]]
    [ "$(jq -c '[[.exceptions[] | select(.factor == 0)], .tiers[0].coverage.measured_pairs]' c/matrix.json)" = '[[],6]' ]
    rm -r c
    rack
    NCCL_IB_DISABLE=1 run run_rack
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"--path ib wants NCCL_IB_DISABLE=0, but the environment says NCCL_IB_DISABLE=1"*"what NICs carry is not known"* ]]
    [ "$(jq -r '.tiers[-1].coverage.measured_pairs // 0' c/matrix.json)" = 0 ]
}

@test "the second pass over something else than HCAs: 78, and nothing of it is fitted" {
    machine nic\ mlx5_{0..3}:1/IB 'host 0-3 n0' 'via 0-3 0-3 SHM/direct/direct'
    rack
    run run_rack
    echo "$output"
    [ "$status" -eq 78 ]
    [[ $output == *"asked ib, used SHM on ranks 0-3"*"--no-nic-pass and another -o leave it out"* ]]
    [ ! -e c/matrix.json ]
}

@test "discover --nccl: one communicator, what NCCL built and chose, and what is odd" {
    machine "${ib[@]}" 'ring 0,4,1,5,2,6,3,7' 'algo AllReduce 1M TREE LL'
    run fakes timeout 300 mpirun -n 8 --oversubscribe --bind-to none --mca btl self,tcp \
        --mca btl_tcp_if_include lo --mca mpi_yield_when_idle 1 ./on_host railgauge-probe discover \
        --nccl -o t.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"NCCL       2.28.9+cuda13.0, 8 ranks reported"* ]]
    [[ $output == *"order 0 4 1 5 2 6 3 7 (4 channels)"* ]]
    [[ $output == *"chosen "*"all_reduce     1 KiB to 1 MiB: tree ll"* ]]
    [[ $output == *"ring crosses hosts 8 times, 2 suffice (4 of 4 rings of 8 ranks)"* ]]
    [ "$(nccl 'choices.rows | length > 5' t.json)" = true ]
}

# bats test_tags=nightly
@test "a sweep over two hosts: what NCCL refuses across them is measured within each" {
    machine "${ib[@]}" 'nvls 4'
    run campaign --op all_reduce,all_gather -n 1 -w 0 --epochs 1 --no-retest --sweep
    echo "$output"
    [ "$status" -eq 0 ]
    said() {
        local what
        for what in op ranks src stop; do set -- "$@" "$(column "$what" "c/sweep/$1.tsv")"; done
        paste -d ' ' <(echo "$2") <(echo "$3") <(echo "$4") <(echo "$5") | LC_ALL=C sort
    }
    [ "$(said NVLS-Simple)" = "$(printf '%s\n' all_{gather,reduce}{" 2 0 failed"," 4 0 count"," 4 4 count"," 8 0 failed"})" ]
    [ "$(said NVLSTree-Simple | grep count)" = "all_reduce 8 0 count" ]
    [ "$(said PAT-Simple | grep count)" = "all_gather 2 0 count" ]
    [[ $output == *"all_reduce on 4 ranks, 1 node: NVLS LL, LL128; "*"all_reduce on 8 ranks, 2 nodes: NVLS LL, LL128, Simple; "* ]]
}

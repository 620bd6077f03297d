#!/usr/bin/env bats
# ibsim.bats - the subnet itself, read through libibnetdisc from ibsim's simulated fabric: what it
# is, what changes when cables are pulled, and that the text of ibnetdiscover says the same.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    # shellcheck source=tests/ib/sim.bash
    . "$BATS_TEST_DIRNAME/sim.bash"
    net=$BATS_TEST_DIRNAME/rails-hdr.net
}

teardown() {
    sim_stop
}

# cables FILE: "leaf[1] node01 mlx5_0[1] 4xHDR", sorted.
cables() {
    jq -r '.net_nodes.rows as $n | .cables.rows[] |
        ["\($n[.[0]][2])[\(.[1])]", "\($n[.[2]][2])[\(.[3])]"] + [.[4]] |
        "\(.[0:2] | sort | join(" ")) \(.[2])"' "$1" | sort
}

@test "a simulated fabric read live is the one that was written" {
    need_ibsim
    sim_start "$net"
    run -0 --separate-stderr sim_run railgauge discover --ibnet live -o live.json
    [[ $output == *"network    8 leaves, 2 spines; 32 adapters of 8 hosts"* ]]
    [[ $output == *"cables     48: 4xHDR (25.0 GB/s)"* ]]
    railgauge discover -q --ibnet "$net" -o text.json
    [ "$(cables live.json | wc -l)" -eq 48 ]
    diff <(cables live.json) <(cables text.json)
    # The same claims, and each NIC on its leaf.
    diff <(jq -c '.claims.rows[] | .[4]' live.json) <(jq -c '.claims.rows[] | .[4]' text.json)
    [ "$(jq '[.nics.rows[] | select(.[4] == 25e9)] | length' live.json)" -eq 32 ]
}

@test "live and the text that ibnetdiscover prints of the same subnet agree" {
    need_ibsim
    command -v ibnetdiscover >/dev/null || skip "no ibnetdiscover (package infiniband-diags)"
    sim_start "$net"
    sim_run ibnetdiscover >dump.txt 2>/dev/null
    grep -q '^Switch' dump.txt
    sim_run railgauge discover -q --ibnet live -o live.json 2>/dev/null
    railgauge discover -q --ibnet dump.txt -o text.json
    diff <(cables live.json) <(cables text.json)
    # GUIDs of nodes and ports too.
    diff <(jq -c '.net_nodes.rows[] | .[0:4]' live.json | sort) <(jq -c '.net_nodes.rows[] | .[0:4]' text.json | sort)
    diff <(jq -c '.cables.rows[] | .[6:8] | sort' live.json | sort) <(jq -c '.cables.rows[] | .[6:8] | sort' text.json | sort)
}

@test "a cable that is pulled is missed, by name; plugged in again nothing is odd" {
    need_ibsim
    sim_start "$net"
    sim_run railgauge discover -q --ibnet live -o whole.json 2>/dev/null
    sim_do 'Unlink "S-b8cef60300b00200"[34]' # leaf-su0-r2 to spine-1
    sim_run railgauge discover -q --ibnet live -o less.json 2>/dev/null
    diff <(cables whole.json) <(cables less.json) >gone || true
    [ "$(grep -c '^[<>]' gone)" -eq 1 ]
    grep -q '^< leaf-su0-r2\[34\] spine-1\[3\] 4xHDR' gone
    sim_do 'ReLink "S-b8cef60300b00200"[34]'
    sim_run railgauge discover -q --ibnet live -o again.json 2>/dev/null
    diff <(cables whole.json) <(cables again.json)
    run -0 railgauge lint again.json
    run -1 railgauge lint less.json
    [[ $output == *"leaf-su0-r2: no cable to spine-1"* ]]
}

@test "an adapter whose cable is pulled is missed on its leaf" {
    need_ibsim
    sim_start "$net"
    sim_do 'Unlink "H-a088c20300c10110"[1]' # su1n01 mlx5_1
    sim_run railgauge discover -q --ibnet live -o less.json 2>/dev/null
    [ "$(cables less.json | wc -l)" -eq 47 ]
    run -1 railgauge lint less.json
    [[ $output == *"su1n01: 3 adapters in the network where 3 of the 4 hosts"*"none on leaf-su1-r1"* ]]
}

@test "a simulator that does not know NDR makes no fabric slow" {
    need_ibsim
    sed 's/4xHDR/4xNDR/' "$net" >ndr.net
    sim_start ndr.net
    run -0 --separate-stderr sim_run railgauge discover --ibnet live -o live.json
    # ibsim 0.10 says SDR, 0.12 NDR: one rate for all either way, and none is odd.
    [[ $output == *"cables     48: 4xSDR (1.00 GB/s)"* || $output == *"cables     48: 4xNDR (50.0 GB/s)"* ]]
    run -0 railgauge lint live.json
    [[ $output != *"speed "*"where"* ]]
    # Told as a note where it was lost.
    [[ $(jq -r '.cables.rows[0][4]' live.json) != 4xSDR || $output == *"note"*"all 48 cables tell SDR"* ]]
}

@test "an adapter may be named; the same subnet twice is one" {
    need_ibsim
    sim_start "$net"
    run -78 sim_run railgauge discover -q --ibnet live:mlx5_7 -o live.json
    [[ $output == *"no InfiniBand adapter mlx5_7 on this machine, only "* ]]
    only=${output##*only }
    export SIM_HOST=H-a088c20300c00000 # su0n00 mlx5_0: an adapter, whose first port is 1
    run -0 sim_run railgauge discover -q --ibnet "live:$only:1" -o named.json
    [ "$(cables named.json | wc -l)" -eq 48 ]
    run -0 sim_run railgauge discover -q --ibnet live --ibnet live -o live.json
    [ "$(cables live.json | wc -l)" -eq 48 ]
}

@test "without an adapter, the reason in words" {
    [ ! -e /sys/class/infiniband ] || [ -z "$(ls /sys/class/infiniband)" ] || skip "this machine has one"
    run -78 railgauge discover --ibnet live
    [[ $output == *"no InfiniBand adapter on this machine"* || $output == *"libibnetdisc.so.5"* ]]
}

# machine COMMANDS: as nobody on a machine with the adapter mlx5_0, whose /dev is made by COMMANDS.
machine() {
    unshare -m sh -c "mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/mlx5_0 &&
        mount -t tmpfs -o mode=755 none /dev && cp '$(command -v railgauge)' /dev/rg && $1 &&
        exec setpriv --reuid 65534 --regid 65534 --clear-groups /dev/rg discover --ibnet live"
}

@test "without permission, without the module: the reason in words" {
    need_ibsim
    unshare -m mount -t tmpfs none /sys/class 2>/dev/null || skip "this machine does not allow mounts"
    run -78 machine 'mkdir /dev/infiniband && touch /dev/infiniband/umad0 && chmod 600 /dev/infiniband/umad0'
    [[ $output == *"no permission to read the InfiniBand subnet: /dev/infiniband/umad0: Permission denied; root may, or give the text of ibnetdiscover"* ]]
    run -78 machine true
    [[ $output == *"no /dev/infiniband/umad*: the module ib_umad is not loaded"* ]]
}

#!/usr/bin/env bats
# verbs.bats - libibverbs as the stand-in of tests/fake has it: ports that discover reads, and the transport
# `verbs` under faults that no soft RoCE makes.

bats_require_minimum_version 1.5.0
load helper

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    [ -e "$build/fake/libverbs_fake.so.1" ] || skip "the stand-in is not built (make check builds it)"
    export RAILGAUGE_IBVERBS=$build/fake/libverbs_fake.so.1 FAKE_VERBS=$PWD/devices.txt
}

# devices LINE... - what libibverbs is asked for here (tests/fake/verbs_fake_text.c).
devices() { printf '%s\n' "$@" >devices.txt; }

@test "discover: ports through libibverbs beside sysfs, and where they differ" {
    "$top/tests/machines/unpack.sh" "$top/tests/machines/roce.txt" "$PWD/root"
    devices "device mlx5_0 layer=roce gids=5" "gid 3 v2 ::ffff:10.1.0.1" "device mlx5_1 layer=roce speed=HDR ports=2 max_qp=1000" \
        "port 1 mtu=1024" "gid 2 v2 ::ffff:10.2.0.1 port=1" "port 2 state=down" "gid 2 v2 ::ffff:10.3.0.1 port=2" \
        "device mlx5_bond_0 open=EACCES"
    ranks 2 "$probe" discover --root "$PWD/root" -q -o t.json
    # nic up link_layer rate firmware gid mtu mtu_max gids qps
    [ "$(jq -c '.verbs.rows[][:10]' t.json)" = '[0,true,"ethernet",50000000000,"28.39.1002","::ffff:10.1.0.1",4096,4096,5,131072]
[1,true,"ethernet",25000000000,"28.39.1002","::ffff:10.2.0.1",1024,4096,8,1000]
[2,false,"ethernet",25000000000,"28.39.1002","::ffff:10.3.0.1",4096,4096,8,1000]' ]
    jq -r '.unseen[] | .what + ": " + .why' t.json | grep "verbs of mlx5_bond_0: libibverbs cannot open it: Permission denied"
    run -1 railgauge lint t.json
    [[ $output == *"mlx5_1:2: libibverbs tells the port down where sysfs tells up"* ]]
    [[ $output == *"mlx5_1: RDMA packets of 1024 bytes where the port can do 4096"* ]]
}

@test "discover: a library with no list of devices, and one that is none" {
    "$top/tests/machines/unpack.sh" "$top/tests/machines/roce.txt" "$PWD/root"
    devices "list ENOSYS"
    ranks 1 "$probe" discover --root "$PWD/root" -q -o t.json
    jq -r '.unseen[] | .what + ": " + .why' t.json | grep "verbs: libibverbs finds no device: Function not implemented"
    RAILGAUGE_IBVERBS=$PWD/none.so ranks 1 "$probe" discover --root "$PWD/root" -q -o t.json
    jq -r '.unseen[] | .what + ": " + .why' t.json | grep "verbs: libibverbs cannot be loaded: $PWD/none.so"
}

#!/usr/bin/env bats
# discover.bats - recorded machines (tests/machines) and this one, read by the MPI program.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    load helper
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
}

told() {
    local n=$1
    shift
    ranks "$n" railgauge-probe "$@" 2>err.txt
}

# discover MACHINE RANKS - the picture of a recorded machine; t.json is written.
discover() {
    "$top/tests/machines/unpack.sh" "$top/tests/machines/$1.txt" "$PWD/root"
    told "$2" discover --root "$PWD/root" -o t.json
}

@test "a virtual machine: CPU endpoints, one port, and what is not visible with the reason" {
    run discover vm 2
    [ "$status" -eq 0 ]
    [[ $output == *": 2 endpoints, 4 cores, 1 socket, 16 GiB, Intel Xeon Processor (Skylake)"* ]]
    [[ $output == *"NICs       eth0: Ethernet, rate not visible, up (sysfs)"* ]]
    [[ $output == *"tiers      shm      same host, 1 pair"* ]]
    [[ $output == *"  NVLink domain        no NVIDIA driver on this host"* ]]
    [[ $output == *"  rate of eth0         its driver does not tell a speed"* ]]
    [ "${#lines[@]}" -le 25 ]
}

@test "an HGX host: each rank has a GPU and the NIC beside it, names in any order, the dead port last" {
    run discover hgx8 8
    [ "$status" -eq 0 ]
    [ "$(jq -r '[.endpoints.rows[] | .[9]] | join(" ")' t.json)" = \
        "0000:1a:00.0 0000:3c:00.0 0000:4d:00.0 0000:5e:00.0 0000:9c:00.0 0000:bc:00.0 0000:cc:00.0 0000:dc:00.0" ]
    # The port beside the third GPU is down: it takes another one of its socket.
    [ "$(jq -r '[.nics.rows as $n | .endpoints.rows[] | $n[.[8]][1]] | join(" ")' t.json)" = \
        "mlx5_1 mlx5_0 mlx5_3 mlx5_3 mlx5_5 mlx5_4 mlx5_6 mlx5_10" ]
    [[ $output == *"mlx5_2: InfiniBand, 50.0 GB/s, down (sysfs)"* ]]
    [[ $output == *"NVLink domain        the NVIDIA driver is there, but its library (NVML) is not asked"* ]]
}

@test "a GB300 tray: four GPUs with a NIC each; more ranks than GPUs are CPU ranks" {
    run discover gb300-tray 4
    [ "$status" -eq 0 ]
    [ "$(jq -r '[.endpoints.rows[] | .[6] + " " + (.[8] | tostring)] | join(",")' t.json)" = "gpu 0,gpu 1,gpu 2,gpu 3" ]
    [[ $output == *"mlx5_[0-3]: InfiniBand, 100 GB/s, up (sysfs)"* ]]
    run told 5 discover --root "$PWD/root" -q -o t.json
    [ "$status" -eq 0 ]
    [ "$(jq -c '[.endpoints.rows[][6]] | unique' t.json)" = '["cpu"]' ]
}

@test "this machine: one endpoint a rank, in rank order, and railgauge reads it by itself" {
    told 3 discover -q -o t.json
    [ "$(jq -c '[.endpoints.rows[][5]]' t.json)" = '[0,1,2]' ]
    [ "$(jq -r '.hosts.rows[0][0]' t.json)" = "$(hostname)" ]
    run railgauge discover -o one.json
    [ "$status" -eq 0 ]
    [[ $output == "topology   1 host, 1 endpoint"* ]]
    [ "$(jq '.endpoints.rows | length' one.json)" -eq 1 ]
}

@test "a folder that is not there fails on all ranks with one message" {
    run told 3 discover --root /nonexistent -o t.json
    [ "$status" -eq 66 ]
    grep -q "rank 0: /nonexistent: no such folder with a recorded machine" err.txt
    [ "$(grep -c 'no such folder' err.txt)" -eq 1 ]
    [ ! -e t.json ]
}

# pods KUBELET COMMAND... - four ranks, each in a pod of its own (host name worker-RANK), with the environment and
# mounts that $1 gives it, as a kubelet would.
pods() {
    unshare --uts --mount true 2>/dev/null || skip "host names cannot be had here (unshare --uts)"
    cat >pod <<'END'
#!/bin/bash
rank=$OMPI_COMM_WORLD_RANK
hostname "worker-$rank"
eval "$1"
shift
exec "$@"
END
    chmod +x pod
    local kubelet=$1
    shift
    ranks 4 unshare --uts --mount "$PWD/pod" "$kubelet" "$@" 2>err.txt
}
hosts() { jq -r '[.hosts.rows[][0]] | join(" ")' "$1"; }

@test "pods are named after nodes, in campaigns and in every export for schedulers" {
    pods 'export NODE_NAME=gpu-$((rank / 2)).cluster' railgauge-probe probe -t mpi --op pairs -b 8 -e 4K -n 3 --epochs 1 -o points.tsv
    [ "$(hosts topology.json)" = "gpu-0.cluster gpu-1.cluster" ]
    # Two pods of a node share its devices: they are there once.
    [ "$(jq -c '[.endpoints.rows[][0]]' topology.json)" = '[0,0,1,1]' ]
    [ "$(jq '[.nics.rows[] | .[0:2]] | length == (unique | length)' topology.json)" = true ]
    # What a campaign measured on them, and one rack of both, as a label would say.
    jq '.levels.rack = ["r0"] | .endpoints.rows |= map(.[3] = 0) | .sources[0][3] = "label"' topology.json >racks.json
    railgauge seal racks.json
    for f in k8s-labels volcano topograph; do
        railgauge export --format $f racks.json --partial -o $f.out
        grep -q gpu-1.cluster $f.out
        run ! grep worker- $f.out
    done
}

@test "without NODE_NAME a pod has the machine's id, or what a map says of pods and machines" {
    mkdir -p sys0/class/dmi/id sys1/class/dmi/id kubelet/pods/uid
    echo 4C4C4544-0042-4A10-8054-B2C04F4D3532 >sys0/class/dmi/id/product_uuid
    echo i-0123456789abcdef0 >sys1/class/dmi/id/board_asset_tag
    cp /etc/hosts kubelet/pods/uid/etc-hosts
    # The environment is what ssh leaves of it: the kubelet's /etc/hosts tells that this is a pod.
    pod='export RAILGAUGE_SYS=$PWD/sys$((rank / 2)); mount --bind kubelet/pods/uid/etc-hosts /etc/hosts'
    pods "$pod" railgauge-probe discover -q -o t.json
    [ "$(hosts t.json)" = "4c4c4544-0042-4a10-8054-b2c04f4d3532 i-0123456789abcdef0" ]
    printf '%s\n' '4c4c4544-0042-4a10-8054-b2c04f4d3532 tray-1' 'aws:///us-west-2a/i-0123456789abcdef0 tray-2' >nodes
    pods "$pod" railgauge-probe discover -q --node-map nodes -o t.json
    [ "$(hosts t.json)" = "tray-1 tray-2" ]
    printf '%s\n' 'worker-0 a' 'worker-1 b' 'worker-2 a' 'worker-3 b' >nodes
    pods true railgauge-probe discover -q --node-map nodes -o t.json
    [ "$(hosts t.json)" = "a b" ]
    pods true railgauge-probe discover -q -o t.json # no pods, nothing to go by
    [ "$(hosts t.json)" = "worker-0 worker-1 worker-2 worker-3" ]
    echo 'worker-0 a b' >nodes
    run railgauge discover --node-map nodes -q
    [ "$status" -eq 64 ]
    [[ $output == *'nodes:1: a line is "SEEN NODE", two words'* ]]
    run railgauge run --node-map none -o c
    [ "$status" -eq 64 ]
    [[ $output == *"none: No such file"* ]]
}

@test "one name for two machines is refused, and two pods of a node that see different GPUs are one host" {
    echo 0b77f3a8-0000-4000-8000-000000000001 >boot
    run pods 'export NODE_NAME=jenkins; [ $rank -lt 3 ] || mount --bind boot /proc/sys/kernel/random/boot_id' railgauge-probe discover -q -o t.json
    [ "$status" -eq 78 ]
    grep -q 'ranks 0 (worker-0) and 3 (worker-3) are on two machines, and both are told to be on node jenkins' err.txt
    # Of the tray's four GPUs and NICs the first pod sees GPUs 0 and 1 and NICs 0 to 2, the second the rest and NIC 2 again.
    mapfile -t gpus < <(sed -n 's|^/sys/devices/.*/\(.*\)/vendor: 0x10de$|\1|p' "$top/tests/machines/gb300-tray.txt")
    grep -v "${gpus[2]}\|${gpus[3]}\|mlx5_3" "$top/tests/machines/gb300-tray.txt" >pod0.txt
    grep -v "${gpus[0]}\|${gpus[1]}\|mlx5_[01]" "$top/tests/machines/gb300-tray.txt" >pod1.txt
    for n in 0 1; do
        "$top/tests/machines/unpack.sh" "pod$n.txt" "$PWD/root$n"
    done
    pods 'hostname worker-$((rank / 2)); export NODE_NAME=tray-1 ROOT=root$((rank / 2))' \
        sh -c 'exec railgauge-probe discover -q --root "$PWD/$ROOT" -o t.json'
    [ "$(hosts t.json)" = tray-1 ]
    [ "$(jq -r '[.endpoints.rows[] | .[9]] | join(" ")' t.json)" = "${gpus[*]}" ]
    [ "$(jq -r '[.nics.rows[][1]] | join(" ")' t.json)" = "mlx5_0 mlx5_1 mlx5_2 eth0 mlx5_3" ]
    [ "$(jq -r '[.nics.rows as $n | .endpoints.rows[] | $n[.[8]][1]] | join(" ")' t.json)" = "mlx5_0 mlx5_1 mlx5_2 mlx5_3" ]
}

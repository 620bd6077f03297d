#!/usr/bin/env bats
# shellcheck disable=SC2154,SC2086 # stderr comes from run; process numbers may be none
# host_sources.bats - files that speak of one host, added to each other and to topology.json.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    machines=$top/tests/machines
    cd "$BATS_TEST_TMPDIR" || return 1
}

teardown() {
    [ -z "${ns-}" ] || {
        kill ${a-} ${b-} 2>/dev/null || true
        ip netns del "$ns" 2>/dev/null || true
        ip link del "$ns" 2>/dev/null || true
        rm -rf "${sockets-/nonexistent}"
    }
}

@test "nvidia-smi's XML of two trays makes their NVLink domain" {
    run railgauge discover --smi-xml n1="$machines/smi-xml/tray1.xml" --smi-xml n2="$machines/smi-xml/tray2.xml" -o t.json
    [ "$status" -eq 0 ]
    [[ $output == *"domains    5c1a2b3c-0d1e-4f20-8a9b-0123456789ab.32766: 4 GPUs, n[1-2]"* ]]
    [[ $output == *"NVLink     2 hosts good, 0 bad, 1 domain across hosts"* ]]
    railgauge discover t.json >again.txt
    [ "$output" = "$(cat again.txt)" ]
}

@test "several files of one kind without HOST= are of the hosts that they are named after" {
    cp "$machines/smi-xml/tray1.xml" n1.xml
    cp "$machines/smi-xml/tray2.xml" n2.xml
    run railgauge discover --smi-xml n1.xml --smi-xml n2.xml -o t.json
    [ "$status" -eq 0 ]
    [[ $output == *": 4 GPUs, n[1-2]"* ]]
    [ "$(jq -c '[.hosts.rows[][0]], (.gpus.rows | length)' t.json | xargs)" = "[n1,n2] 4" ]
    # A file of another kind is of the only host; a second one of that kind is not.
    run railgauge discover --smi-xml n1.xml --smi-topo "$machines/smi-topo/hgx-h100-8gpu-8nic-ansi.txt" -q -o u.json
    [ "$(jq -c '[.hosts.rows[][0]]' u.json)" = '["n1"]' ]
    run railgauge discover u.json --smi-xml n1=n1.xml --smi-xml n2.xml -q -o v.json
    [ "$(jq -c '[.hosts.rows[][0]]' v.json)" = '["n1","n2"]' ]
}

@test "a bad tray is named with its reason and an exit code" {
    run --separate-stderr railgauge discover --check -q --smi-xml n1="$machines/smi-xml/tray1.xml" --smi-xml n3="$machines/smi-xml/tray3-bad.xml"
    [ "$status" -eq 1 ]
    [ "$stderr" = "railgauge discover: NVLink is bad on 1 of 2 hosts: n3" ]
}

# xml WORDS - tray 1 with another text for every value of its first GPU that the sed script meets.
xml() {
    sed -E "1,/<\/gpu>/{/<gpu /,/<\/gpu>/{$1}}" "$machines/smi-xml/tray1.xml"
}

@test "a GPU that is lost is a finding, whatever else its XML has" {
    for said in "GPU is lost" "[GPU is lost]" "GPU requires reset"; do
        xml "s/>[^<>]+<\//>$said<\//" >n1.xml
        run --separate-stderr railgauge discover --check --smi-xml n1.xml
        echo "$output"
        [ "$status" -eq 1 ]
        why="GPU 0: ${said//[][]/}: it answers no question"
        why=${why/requires reset/needs a reset}
        [[ $(tr -s ' \n' ' ' <<<"$output") == *"n1: bad: $why (nvidia-smi; dmesg names the Xid)"* ]]
        [[ $output == *"endpoints  0  GPU 1  0009:06:00.0  NVIDIA GB300"* ]]
    done
    # by the library: no rank is placed on it
    printf 'include %s\ngpu 2 lost 1\n' "$top/tests/fake/nvml/gb300.txt" >fake
    RAILGAUGE_NVML=$RG_BUILD/fake/libnvidia-ml.so.1 FAKE_NVML=$PWD/fake run railgauge discover --check --root "$PWD" -o t.json
    [ "$status" -eq 1 ]
    [[ $output == *"GPU 2: GPU is lost"* ]]
    [ "$(jq -c '[.gpus.rows[][2]]' t.json)" = '["0008:06:00.0","0009:06:00.0",null,"0019:06:00.0"]' ]
    [[ $output != *"drivers differ"* ]]
}

@test "GPUs that MIG splits are said, and their tray is no other for it" {
    xml 's/<product_name>/<mig_mode><current_mig>Enabled<\/current_mig><\/mig_mode>&/' >n1.xml
    run railgauge discover --check --smi-xml n1.xml
    [ "$status" -eq 0 ]
    [[ $(tr -s ' \n' ' ' <<<"$output") == *"GPU instances MIG is on at 1 GPU of n1: their instances are not listed, and have neither NVLink nor PCIe to each other"* ]]
    cp "$machines/smi-xml/tray1.xml" n1.xml
    run railgauge discover --smi-xml n1.xml
    [[ $output != *MIG* ]]
}

@test "a tray whose source says nothing of its registration is not bad for it; one among others is" {
    sed '/<fabric>/,/<\/fabric>/d' "$machines/smi-xml/tray1.xml" >n1.xml
    run railgauge discover --check --smi-xml n1.xml
    echo "$output"
    [ "$status" -ne 1 ]
    [[ $output != *bad:* ]]
    run railgauge discover --check --smi-xml n1.xml --smi-xml n2="$machines/smi-xml/tray2.xml"
    [ "$status" -eq 1 ]
    [[ $output == *"n1: bad: "*"fabric registration not told"* ]]
}

@test "XML and matrix of one host fill each other's gaps" {
    run railgauge discover --smi-xml n1="$machines/smi-xml/hgx.xml" --smi-topo n1="$machines/smi-topo/hgx-h100-8gpu-8nic-ansi.txt"
    [ "$status" -eq 0 ]
    [[ $output == *"0000:88:00.0  NVIDIA H100 80GB HBM3  NUMA 1  near mlx5_7"* ]]
    [[ $output == *", 18 NVLinks to switches, PCIe 5 x16, driver 580.65.06 (nvidia-smi)"* ]]
    [[ $output == *"NCCL_IB_HCA='=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1'"* ]]
}

@test "EFA: NCCL reaches it by a plugin, not NCCL_IB_HCA; what is installed, and what is missing" {
    local d
    for d in 10 11; do
        cat <<TXT
/sys/devices/0000:$d:00.0/uevent: DRIVER=efa\nPCI_SLOT_NAME=0000:$d:00.0
/sys/class/infiniband/rdmap${d}s0/device -> ../../../devices/0000:$d:00.0
/sys/class/infiniband/rdmap${d}s0/ports/1/rate: 100 Gb/sec (4X EDR)
/sys/class/infiniband/rdmap${d}s0/ports/1/state: 4: ACTIVE
/sys/class/infiniband/rdmap${d}s0/ports/1/link_layer: Unknown
/sys/class/infiniband/rdmap${d}s0/ports/1/gids/0: fe80:0000:0000:0000:04ab:cdff:fe00:00$d
TXT
    done >p5.txt
    sh "$machines/unpack.sh" p5.txt p5
    run railgauge discover --root p5 -o t.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"compute rdmap10s0,rdmap11s0 (sysfs)"*"EFA: NCCL reaches these by its plugin aws-ofi-nccl"*"plugin:Libfabric proves"* ]]
    [[ $output != *NCCL_IB_HCA* ]]
    [[ $output != *ibnetdiscover* ]] # which no cloud with EFA shows
    said() { tr -s ' \n' ' ' <<<"$output"; }
    [[ $(said) == *"network of NCCL EFA needs the plugin aws-ofi-nccl, which is not in /opt/amazon/ofi-nccl; without it NCCL takes sockets"* ]]
    mkdir -p p5/opt/amazon/ofi-nccl/lib
    touch p5/opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so
    run railgauge discover --root p5 -o t.json
    [[ $(said) == *"plugin Libfabric is installed; LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib NCCL_NET_PLUGIN=ofi lets NCCL load it, and --path plugin:Libfabric proves that it does"* ]]
    # NICs that NCCL's own verbs use, on a machine that has a plugin for them
    sed 's/DRIVER=efa/DRIVER=mlx5_core/; s/: Unknown/: Ethernet/' p5.txt >a3u.txt
    sh "$machines/unpack.sh" a3u.txt a3u
    mkdir -p a3u/usr/local/gib/lib64
    touch a3u/usr/local/gib/lib64/libnccl-net.so
    run railgauge discover --root a3u -o t.json
    [[ $output == *"NCCL_IB_HCA='=rdmap10s0:1,rdmap11s0:1'"* ]]
    [[ $(said) == *"plugin gIB is installed; LD_LIBRARY_PATH=/usr/local/gib/lib64 lets NCCL load it, and --path plugin:gIB proves that it does"* ]]
}

@test "leaves by LLDP join hosts and give rails for NCCL" {
    for n in n1 n2; do
        cat >$n.xml <<XML
<system version="1"><cpu numaid="0">
<pci busid="0000:01:00.0" class="0x060400">
<pci busid="0000:02:00.0" class="0x030200"><gpu dev="0" sm="90"/></pci>
<pci busid="0000:03:00.0" class="0x020000"><nic><net name="mlx5_0" speed="400000"/></nic></pci></pci>
<pci busid="0000:11:00.0" class="0x060400">
<pci busid="0000:12:00.0" class="0x030200"><gpu dev="1" sm="90"/></pci>
<pci busid="0000:13:00.0" class="0x020000"><nic><net name="mlx5_1" speed="400000"/></nic></pci></pci>
</cpu></system>
XML
        sed -e 's/eth1/mlx5_0/' -e 's/eth2/mlx5_1/' "$machines/lldp/$n.txt" >$n.txt
    done
    run railgauge discover --nccl-topo n1.xml --nccl-topo n2=n2.xml --lldp n1=n1.txt --lldp n2=n2.txt -o t.json
    [ "$status" -eq 0 ]
    [[ $output == *"2 leaves (lldp)"*"2 rails (lldp)"* ]]
    [[ $output == *"NCCL_IB_HCA='=mlx5_0:1:0:0,mlx5_1:1:1:0' (NCCL 2.30 and later: with rail and plane)"* ]]
    [[ $output == *"compute mlx5_[0-1] (nccl), rail-[0-1] (lldp)"* ]]
    [ "$(jq -c '[.ports.rows[] | .[10:13] + .[14:17]] | unique' t.json)" = '[[0,null,"compute","lldp","none","nccl"],[1,null,"compute","lldp","none","nccl"]]' ]
    [ "$(jq -c '.claims.rows' t.json)" = '[["lldp","leaf","lldp","leaf-01+leaf-02","n[1-2]"]]' ]
}

@test "a topology file without sources of rails and uses is read and gets them" {
    run railgauge discover "$top/tests/bad/topology/ports-before.json" -o t.json
    [ "$status" -eq 0 ]
    [[ $output == *"compute eth0 (sysfs), rail-0 (lldp), plane-1 (lldp)"* ]]
    [ "$(jq -c '[.ports.rows[] | .[14:17]]' t.json)" = '[["lldp","lldp","sysfs"]]' ]
    railgauge discover t.json -q -o u.json
    [ "$(jq -c '.ports' u.json)" = "$(jq -c '.ports' t.json)" ]
}

@test "hwloc's XML of version 3 says the same as that of version 2" {
    cp "$machines/hwloc/hgx4.xml" h.xml
    railgauge discover --hwloc-xml h.xml >second
    sed -e 's/version="2.0"/version="3.0"/; s/osdev_type="5"/osdev_type="12"/g; s/osdev_type="2"/osdev_type="16"/g' \
        -e 's/osdev_type="3"/osdev_type="48"/g' "$machines/hwloc/hgx4.xml" >h.xml
    railgauge discover --hwloc-xml h.xml >third
    grep -q mlx5_0 third
    diff second third
}

@test "without lldpcli live says so" {
    mkdir bin
    ln -s "$(command -v railgauge)" bin/railgauge
    PATH=$PWD/bin run railgauge discover --lldp h=live
    [ "$status" -eq 66 ]
    [ "$output" = "railgauge discover: lldpcli cannot be started: No such file or directory" ]
}

@test "a switch that really speaks LLDP is heard" {
    command -v lldpd >/dev/null || skip "lldpd is not installed"
    ns=rglldp$$
    ip netns add "$ns" 2>/dev/null || { ns=; skip "no network namespaces here"; }
    sockets=$(mktemp -d /tmp/rglldp-XXXXXX) # lldpcli gives up its rights and must reach them
    chmod 755 "$sockets"
    ip link add "$ns" type veth peer name sw0 netns "$ns" || skip "no veth here"
    ip link set "$ns" up
    ip -n "$ns" link set sw0 up
    ip netns exec "$ns" lldpd -d -u "$sockets/b" -I sw0 3>&- >b.log 2>&1 &
    b=$!
    lldpd -d -u "$sockets/a" -I "$ns" 3>&- >a.log 2>&1 &
    a=$!
    for _ in {1..600}; do # both daemons must answer before anybody asks them
        lldpcli -u "$sockets/a" show configuration >/dev/null 2>&1 &&
            lldpcli -u "$sockets/b" configure system hostname leaf-sw-07 >/dev/null 2>&1 && break
        sleep 0.1
    done
    lldpcli -u "$sockets/b" configure ports sw0 lldp portidsubtype local swp17 >/dev/null
    lldpcli -u "$sockets/b" configure lldp tx-interval 1 >/dev/null
    mkdir bin # the daemon of this test, not that of the machine
    printf '#!/bin/sh\nexec %s -u %s "$@"\n' "$(command -v lldpcli)" "$sockets/a" >bin/lldpcli
    chmod +x bin/lldpcli
    for _ in {1..60}; do
        PATH=$PWD/bin:$PATH railgauge discover --lldp h=live -q -o t.json
        [ "$(jq -r '.ports.rows[0][7]' t.json)" = leaf-sw-07 ] &&
            [ "$(jq -r '.ports.rows[0][8]' t.json)" = swp17 ] && return 0
        sleep 0.5
    done
    jq -c .ports t.json
    return 1
}

@test "lint names a PCIe tree that a virtual machine flattened" {
    railgauge discover --nccl-topo n1="$top/tests/golden/nccl/hgx-h200-8gpu-kvm-flat.xml" -q -o t.json
    run railgauge lint t.json
    [ "$status" -eq 1 ]
    [[ ${lines[0]} == "BAD   pcie-flat n1: 8 GPUs on NVLink switches hang on one host bridge"* ]]
    railgauge discover --nccl-topo n1="$top/tests/golden/nccl/hgx-h200-8gpu-8cx7.xml" -q -o t.json
    run railgauge lint t.json
    [[ $output != *pcie-flat* ]]
}

#!/usr/bin/env bats
# nvml.bats - GPUs as the driver's library tells of them: a stand-in for it with profiles of real
# machines (tests/fake/nvml), and a rack of hosts that are only names on this kernel.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    load helper
    need_mpi
    export RAILGAUGE_NVML=$build/fake/libnvidia-ml.so.1
    [ -e "$RAILGAUGE_NVML" ] || skip "the stand-in for libnvidia-ml is not built"
    cd "$BATS_TEST_TMPDIR" || return 1
}

# machine PROFILE RANKS [OPTION...] - the picture of one host; t.json is written.
machine() {
    local profile=$top/tests/fake/nvml/$1.txt n=$2
    shift 2
    FAKE_NVML=$profile ranks "$n" railgauge-probe discover -o t.json "$@"
}

# cells COLUMN TABLE - the column of a table of t.json, one value a line.
cells() {
    jq -rc --arg c "$1" ".$2 | (.columns | index(\$c)) as \$i | .rows[][\$i]" t.json
}

# need_names - hosts that are only names need a name space of their own.
need_names() {
    unshare -u true 2>/dev/null || skip "unshare -u is not allowed here"
}

# rack HOSTS - trays of a GB300 rack below rack/: profile, root with /dev, as start.sh wants them.
rack() {
    local i name
    need_names
    "$top/tests/machines/unpack.sh" "$top/tests/machines/gb300-tray.txt" "$PWD/tray"
    mkdir -p rack/profiles
    cp "$top/tests/fake/nvml/gb300.txt" rack/profiles/base.inc
    for ((i = 0; i < $1; i++)); do
        name=$(printf 'tray%02d' "$i")
        mkdir -p "rack/$name/dev/nvidia-caps-imex-channels" "rack/$name/etc/nvidia-imex"
        ln -s "$PWD/tray/sys" "$PWD/tray/proc" "rack/$name/"
        touch "rack/$name/dev/nvidia-caps-imex-channels/channel0"
        seq -f '10.0.0.%.0f' "$1" >"rack/$name/etc/nvidia-imex/nodes_config.cfg"
        printf 'include base.inc\ntray %d\n' "$i" >"rack/profiles/$name.txt"
    done
    cat >start.sh <<'SH'
#!/bin/sh
# Rank R of G GPUs a host is on host R / G: its name, and its root with /sys, /proc, /dev.
name=$(printf 'tray%02d' $((OMPI_COMM_WORLD_RANK / $1)))
export FAKE_NVML=$PWD/rack/profiles
exec unshare -u sh -c 'hostname "$0" && exec railgauge-probe discover --root "$PWD/rack/$0" "$@"' "$name" $2 $3 $4 $5
SH
    chmod +x start.sh
}

@test "GB300 rack, 18 x 4: the tray of another clique, the unhealthy and the one without IMEX are named" {
    rack 18
    echo "clique 7" >>rack/profiles/tray05.txt
    echo "gpu 2 health 0x19a" >>rack/profiles/tray09.txt
    rm rack/tray13/dev/nvidia-caps-imex-channels/channel0
    run ranks 72 ./start.sh 4 -o t.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"72 endpoints"* ]]
    [[ $output == *"GPUs       72 x NVIDIA GB300, 18 of 18 NVLinks at 53.1 GB/s to switches, PCIe 6 x16, driver 580.173.02 (nvml)"* ]]
    [[ $output == *"tray05: bad: in clique 7, 17 other hosts of its cluster are in clique 32766"* ]]
    [[ $output == *"tray09: bad: GPU 2: fabric unhealthy: route unhealthy"* ]]
    [[ $output == *"tray13: bad: no IMEX channel that this user may open in /dev/nvidia-caps-imex-channels"* ]]
    [[ $output == *"NVLink     15 hosts good, 3 bad, 2 domains across hosts"* ]]
    [[ $output == *"racks      chassis 1820000000001: 18 hosts, trays 0-17"* ]]
    u=00000001-0000-0000-0000-000000000001
    [ "$(jq -c .levels.domain t.json)" = "[\"$u.32766\",\"$u.7\"]" ]
    # Every rank has its GPU, its domain and its rack; NVML told of them.
    [ "$(cells domain endpoints | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs)" = "0:68 1:4" ]
    [ "$(jq -c '[.endpoints.rows[] | select(.[1] == 1)[0]] | unique' t.json)" = "[5]" ]
    [ "$(jq -r '.hosts.rows[5][0]' t.json)" = tray05 ]
    [ "$(cells rack endpoints | sort -u)" = 0 ]
    [ "$(jq -c '.sources' t.json)" = '[["mpi","nvml","none","nvml","none"]]' ]
    [ "$(jq -c '[.tiers[].name]' t.json)" = '["nvlink","mnnvl","rack","fabric"]' ]
    [ "$(cells imex_channels gpus | sort | uniq -c | awk '{ print $2 ":" $1 }' | xargs)" = "0:4 1:68" ]
    [ "$(cells imex_nodes gpus | sort -u)" = 18 ]
    # The file says the same again, to people and to programs.
    run railgauge discover t.json --json
    [ "$(jq -r '.nvlink.hosts[] | select(.verdict == "bad").host' <<<"$output" | xargs)" = "tray05 tray09 tray13" ]
    run --separate-stderr railgauge discover t.json --check -q
    [ "$status" -eq 1 ]
    [ "$stderr" = "railgauge discover: NVLink is bad on 3 of 18 hosts: tray[05,09,13]" ]
}

@test "a partial rack: 16 of 18 trays are good, and the domain is said to be a part" {
    rack 16
    run ranks 16 ./start.sh 1 -o t.json --check
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"odd        domain 00000001-0000-0000-0000-000000000001.32766: 64 of 72 GPUs are visible"* ]]
    [[ $output == *"tray[00-15]: good: 4 GPUs, 18 of 18 NVLinks at 53.1 GB/s, clique 32766, healthy, 1 IMEX channel"* ]]
}

@test "a cluster UUID of zeros, a link down, a failed registration: bad, with exit code 1 when asked" {
    rack 4
    echo "cluster 00000000-0000-0000-0000-000000000000" >>rack/profiles/tray01.txt
    echo "gpu 2 down 11" >>rack/profiles/tray02.txt
    echo "status 23" >>rack/profiles/tray03.txt
    run --separate-stderr ranks 4 ./start.sh 1 -o t.json --check
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output == *"tray01: bad: all 4 GPUs: cluster UUID is zero: in no domain"* ]]
    [[ $output == *"tray02: bad: GPU 2: 17 of 18 NVLinks up, link 11 down"* ]]
    [[ $output == *"tray03: bad: all 4 GPUs: fabric registration completed with an error: insufficient resources"* ]]
    [[ $stderr == *"NVLink is bad on 3 of 4 hosts: tray[01-03]"* ]]
    [ "$(cells domain endpoints | xargs)" = "0 null 0 null" ]
    [ "$(jq -c '.gpus | (.columns | index("down")) as $i | .rows[10][$i]' t.json)" = "[11]" ]
}

@test "a GB200 tray: GPUs by rank, domain, rack and module from the driver" {
    run machine gb200 4
    echo "$output"
    [ "$status" -eq 0 ]
    [ "$(cells busid endpoints | xargs)" = "0000:29:00.0 0000:3f:00.0 0000:9c:00.0 0000:b2:00.0" ]
    [ "$(cells model endpoints | xargs)" = "0 0 0 0" ]
    [ "$(jq -c .models t.json)" = '["NVIDIA GB200"]' ]
    [ "$(jq -r '.levels.domain[0]' t.json)" = 00000001-0000-0000-0000-000000000001.2 ]
    [ "$(cells module gpus | xargs)" = "2 1 4 3" ]
    [[ $output == *"racks      chassis 1820000000001: 1 host, tray 4"* ]]
}

@test "HGX H100 and B200: the domain is the host, and how that was concluded" {
    for m in h100 b200; do
        run machine "$m" 8 --check
        echo "$output"
        [ "$status" -eq 0 ]
        [[ $output == *"inside the host: 8 GPUs, 18 of 18 NVLinks at "*"; the fabric is registered without a cluster"* ]]
        [ "$(jq -r '.levels.domain | length' t.json)" -eq 1 ]
        [ "$(jq -r '.levels.domain[0]' t.json)" = "$(hostname)" ]
        [ "$(jq -c '.levels.rack' t.json)" = "[]" ]
        [ "$(jq -r '.tiers[0].name' t.json)" = nvlink ]
    done
    # An eighth of the NVLinks of one GPU down is bad there, too.
    printf 'include %s/tests/fake/nvml/h100.txt\ngpu 3 down 0 1\n' "$top" >hurt.txt
    run env FAKE_NVML="$PWD/hurt.txt" timeout 300 railgauge discover --check
    [ "$status" -eq 1 ]
    [[ $output == *"bad: GPU 3: 16 of 18 NVLinks up, links 0, 1 down"* ]]
}

@test "RTX PRO 6000: no NVLink, no domain, a slot at half its width is odd" {
    run machine rtxpro6000 8 --check
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"GPUs       8 x NVIDIA RTX PRO 6000 Blackwell Server Edition, no NVLink, PCIe 5 x16"* ]]
    [[ $output == *"odd        host $(hostname) GPU 6: PCIe x8 of x16"* ]]
    [[ $output == *"NVLink domain        NVML tells of none that is up and registered"* ]]
    [ "$(jq -c '.levels.domain' t.json)" = "[]" ]
    [ "$(cells path gpus | tail -1)" = '["SYS","SYS","SYS","SYS","PXB","PXB","PXB","self"]' ]
}

@test "GPUs on PCI that the driver does not show are no endpoints; a lost one is named" {
    "$top/tests/machines/unpack.sh" "$top/tests/machines/gb300-tray.txt" "$PWD/root"
    cp "$top/tests/fake/nvml/gb300.txt" p.txt
    echo "gpu 1 lost 1" >>p.txt
    export FAKE_NVML=$PWD/p.txt
    run ranks 3 railgauge-probe discover --root "$PWD/root" -o t.json
    echo "$output"
    [ "$status" -eq 0 ]
    [[ $output == *"$(hostname): bad: GPU 1: GPU is lost: it answers no question"* ]]
    [ "$(cells busid endpoints | xargs)" = "0008:06:00.0 0018:06:00.0 0019:06:00.0" ]
    [ "$(cells kind endpoints | sort -u)" = gpu ]
    # The others keep their numbers, and nobody has a path to the lost one.
    cells index gpus; cells path gpus
    [ "$(cells index gpus | xargs)" = "0 1 2 3" ]
    [ "$(cells path gpus | head -1)" = '["self",null,"SYS","SYS"]' ]
    [[ $output == *"GPUs                 1 of the 4 on PCI are not shown by the driver's library"* ]]
}

@test "a library that is named and not there is an error; one without a driver is a reason" {
    export RAILGAUGE_NVML=/nonexistent.so
    run ranks 2 railgauge-probe discover
    [ "$status" -eq 66 ]
    [[ $output == *"rank 0: RAILGAUGE_NVML: /nonexistent.so: cannot open shared object file"* ]]
    run env -u RAILGAUGE_NVML LD_LIBRARY_PATH="$build/fake" railgauge discover -o t.json
    [ "$status" -eq 0 ]
    [[ $output == *"NVLink domain        no NVIDIA driver on this host"* ]]
    [ "$(jq -r 'has("gpus")' t.json)" = false ]
}

@test "a GPU that throttles during the run taints its points: note, warning, finding" {
    printf 'include %s/tests/fake/nvml/gb300.txt\nafter 4 gpu 1 throttle 0x40\n' "$top" >hot.txt
    FAKE_NVML=$PWD/hot.txt ranks 2 railgauge-probe probe --op all_reduce -b 1K -e 64K -n 2 -w 0 --epochs 1 --max-run 60s 2>err.txt
    cat points.tsv err.txt
    # A point takes one look, or two after a pause: the fourth is after the first point and before the
    # end of the third, and the heat stays.
    [ "$(column note points.tsv | head -1)" = "" ]
    words="tainted: endpoint 1 ($(hostname):1): hardware thermal slowdown"
    [ "$(column note points.tsv | tail -5 | sort -u)" = "$words" ]
    n=$(column note points.tsv | grep -cx "$words")
    grep -q "$n of 7 points are tainted; first: $words" err.txt
    grep -q "during the campaign, endpoint 1 ($(hostname):1): hardware thermal slowdown" err.txt
    railgauge fit . -o m.json
    [ "$(jq -r '.findings[] | select(.kind == "tainted").text' m.json)" = \
        "endpoint 1 ($(hostname):1) while $n of 7 points were measured: hardware thermal slowdown" ]
}

@test "new link errors and an Xid taint a point and are told at the end" {
    # Of two looks in a row one ends a point.
    printf 'include %s/tests/fake/nvml/gb300.txt\nafter 3 gpu 0 error 4 12\nafter 4 gpu 0 error 9 12\n' "$top" >p.txt
    echo "after 3 gpu 0 xid 74" >>p.txt
    FAKE_NVML=$PWD/p.txt ranks 2 railgauge-probe probe --op all_reduce -b 1K -e 64K -n 2 -w 0 --epochs 1 --max-run 60s 2>err.txt
    cat points.tsv err.txt
    n=$(column note points.tsv | grep -cE "^tainted: endpoint 0 \($(hostname):0\): (Xid 74, )?(12|24) NVLink errors$")
    [ "$n" -eq 1 ] || [ "$n" -eq 2 ]
    [ "$(column note points.tsv | grep -c .)" -eq "$n" ]
    grep -q "during the campaign, endpoint 0 ($(hostname):0): Xid 74, 24 NVLink errors" err.txt
}

@test "a campaign that nothing happened to has no notes" {
    FAKE_NVML=$top/tests/fake/nvml/gb300.txt ranks 2 railgauge-probe probe --op all_reduce -b 1K -e 4K -n 2 -w 0 \
        --epochs 1 2>err.txt
    [ "$(column note points.tsv | sort -u)" = "" ]
    run ! grep -q tainted err.txt
    railgauge fit . -o m.json
    [ "$(jq '[.findings[] | select(.kind == "tainted")] | length' m.json)" -eq 0 ]
}

#!/usr/bin/env bats
# verbs.bats - libibverbs as the stand-in of tests/fake has it: ports that discover reads, and the transport
# `verbs` under faults that no soft RoCE makes.

bats_require_minimum_version 1.5.0
load helper

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    need_fake_verbs
}

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

# --- the transport ---

# verbs RANKS WORDS... - the rounds of plan.tsv, or what the words say.
verbs() {
    local n=$1
    shift
    rm -f points.tsv
    run ranks "$n" "$probe" probe -t verbs -n 2 -w 0 --epochs 1 --no-retest --max-run 60s "$@"
    echo "$output"
    [ ! -e points.tsv ] || cat points.tsv
}

# Everything is measured and every byte verified.
all_ok() {
    [ "$status" -eq 0 ]
    [ "$(column stop points.tsv | sort -u)" = count ]
    [ "$(column check points.tsv | sort -u)" = ok ]
}

every_op=(--op "pair_latency,pair_bw,pair_bibw,sendrecv,all_to_all,all_gather" -b 8 -e 256K -f 8 --pair-bytes 64K)
pair() { plan "isolated pair_bw 65536 65536 2 0 0>1" >plan.tsv; }
here=$(hostname)

@test "campaigns: write, read and send of host memory, all verified, by one and by several queue pairs" {
    need_verbs
    devices "device mlx5_0-3 max_message=65536"
    for verb in write read send; do
        for more in "" "--qps 4 --depth 8"; do
            # shellcheck disable=SC2086
            verbs 4 "${every_op[@]}" --verb $verb $more
            all_ok
            [ "$(column op points.tsv | sort -u | wc -l)" -eq 6 ]
        done
    done
}

@test "campaigns: eight ranks over RoCE, and over devices that give little" {
    need_verbs
    devices "device mlx5_0-7 layer=roce"
    verbs 8 --op pair_latency,all_to_all -b 8 -e 4K -f 8
    all_ok
    devices "device mlx5_0-1 max_inline=0 max_qp_wr=16 max_cqe=64 max_reads=1 ece=no ordered=no mtu=256 max_message=512"
    for verb in write read send; do
        verbs 2 "${every_op[@]}" --verb $verb
        all_ok
    done
}

@test "campaigns: memory of GPUs through dma-buf, through nvidia-peermem, and neither" {
    need_stand_ins "devices 8"
    need_verbs
    for how in "dmabuf=yes" "dmabuf=no peermem=yes"; do
        devices "device mlx5_0-1 $how"
        for verb in write read send; do
            verbs 2 "${every_op[@]}" --verb $verb --memory gpu
            all_ok
        done
    done
    devices "device mlx5_0-1 dmabuf=no"
    pair
    verbs 2 --plan plan.tsv --memory gpu
    [ "$status" -ne 0 ]
    [[ "$output$(cat points.tsv)" == *"GPU memory cannot be registered: dma-buf: mlx5_0:1: "*"; nvidia-peermem: mlx5_0:1: Bad address"* ]]
}

@test "wrong data: rank, source and byte are named, and everything is measured" {
    need_verbs
    devices "device mlx5_0-2"
    plan "isolated pair_bw 4096 4096 2 0 0>1" "isolated pair_bw 4096 4096 2 0 2>0" >plan.tsv
    FAKE_VERBS_FAULT=corrupt@0\>1:1:100 verbs 3 --plan plan.tsv
    [ "$status" -eq 2 ]
    [[ $(column stop points.tsv | xargs) == "count count" ]]
    [[ $(column note points.tsv | grep -m 1 .) == *"rank 1 (host $here): byte 100 "*"is 0x"* ]]
    [ "$(column check points.tsv | xargs)" = "wrong ok" ]
}

# Statuses of completions and their words.
statuses=("local-length:local length error" "local-operation:local queue pair error" "local-protection:local protection error"
    "bad-response:bad response" "local-access:local access error" "remote-invalid:remote invalid request"
    "remote-access:remote access error" "remote-operation:remote operation error" "retry-exceeded:retry exceeded"
    "rnr-exceeded:receiver not ready" "remote-aborted:remote abort" "fatal:fatal device error"
    "response-timeout:response timeout" "general:general error")

@test "each failed completion: in words, of whom to whom; who has no fault is measured" {
    need_verbs
    devices "device mlx5_0-5"
    local faults="" rounds=() i=0 one a=0 b=0
    for one in "${statuses[@]}"; do # each has a pair of its own
        a=$((a + 1))
        [ "$a" -lt "$b" ] || a=0 b=$((b + 1))
        rounds+=("isolated pair_bw 4096 4096 2 0 $b>$a")
        faults+=,${one%%:*}@$b\>$a:1
    done
    plan "${rounds[@]}" "isolated pair_bw 4096 4096 2 0 0>1" >plan.tsv
    FAKE_VERBS_FAULT=${faults#,} verbs 6 --plan plan.tsv
    [ "$status" -eq 2 ]
    i=0
    while IFS=$'\t' read -r a b note; do
        [ "$i" -eq "${#statuses[@]}" ] || [[ $note == "${statuses[i]#*:}: rank $a ($here mlx5_$a:1) to rank $b ($here mlx5_$b:1): "* ]]
        i=$((i + 1))
    done < <(paste <(column round points.tsv) <(column src points.tsv) <(column dst points.tsv) <(column note points.tsv) |
        sort -n | cut -f 2-) # some rounds come first
    [ "$i" -eq $((${#statuses[@]} + 1)) ]
    [ "$(paste <(column round points.tsv) <(column stop points.tsv) | sort -n | tail -n 1 | cut -f 2)" = count ]
}

@test "a receive that fails: by its sender and receiver" {
    need_verbs
    devices "device mlx5_0-1"
    pair
    FAKE_VERBS_FAULT=recv-general@1:1 verbs 2 --plan plan.tsv --verb send
    [ "$status" -eq 2 ]
    [[ $(column note points.tsv) == *"general error: rank 0 ($here mlx5_0:1) to rank 1 ($here mlx5_1:1): "* ]]
}

@test "a port that goes down, and a device that is lost: which" {
    need_verbs
    devices "device mlx5_0-3"
    plan "isolated pair_bw 4096 4096 2 0 0>1" "isolated pair_bw 4096 4096 2 0 2>3" >plan.tsv
    FAKE_VERBS_FAULT=down@mlx5_0:5 verbs 4 --plan plan.tsv
    [ "$status" -eq 2 ]
    [[ $(column note points.tsv | grep -m 1 .) == *"rank 0 ($here mlx5_0:1)"*"port went down"* ]]
    [[ $(column stop points.tsv | xargs) == "failed count" ]]
    rm -f devices.txt.fabric
    FAKE_VERBS_FAULT=gone@mlx5_0:5 verbs 4 --plan plan.tsv
    [ "$status" -eq 2 ]
    [[ $(column note points.tsv | grep -m 1 .) == *"rank 0 ($here mlx5_0:1)"*"device failed"* ]]
}

@test "a path that loses everything: retries are exceeded, from whom to whom" {
    need_verbs
    devices "device mlx5_0-1"
    pair
    FAKE_VERBS_FAULT=lost@0\>1:1 verbs 2 --plan plan.tsv --ib-timeout 12 --ib-retries 2
    [ "$status" -eq 2 ]
    [[ $(column note points.tsv) == *"retry exceeded: rank 0 ($here mlx5_0:1) to rank 1 ($here mlx5_1:1): path down"* ]]
}

@test "which port: in turn, as told, by the second number; and none that is not there, down or shut" {
    need_verbs
    devices "device mlx5_0 state=down" "device mlx5_1-2 ports=2" "port 1 state=down"
    plan "isolated pair_bw 64 64 2 0 0>1" >plan.tsv
    export FAKE_VERBS_FAULT=general@0:1
    used() { column note points.tsv | grep -o 'mlx5_[0-9]*:[0-9]' | xargs; }
    verbs 2 --plan plan.tsv
    [ "$(used)" = "mlx5_1:2 mlx5_2:2" ]
    verbs 2 --plan plan.tsv --hca mlx5_2
    [ "$(used)" = "mlx5_2:2 mlx5_2:2" ]
    verbs 2 --plan plan.tsv --hca mlx5_2:2,mlx5_1:2
    [ "$(used)" = "mlx5_2:2 mlx5_1:2" ]
    unset FAKE_VERBS_FAULT
    refused() { # WORDS OPTION...
        local words=$1
        shift
        verbs 2 --plan plan.tsv "$@"
        [ "$status" -ne 0 ]
        [[ $output == *"$words"* ]]
    }
    refused "no port mlx5_7 here (--hca); there are mlx5_0:1 (DOWN), mlx5_1:1 (DOWN), mlx5_1:2 (ACTIVE)" --hca mlx5_7
    refused "mlx5_1:1 is DOWN, not ACTIVE (--hca)" --hca mlx5_1:1
    refused "--hca mlx5_1:2, has an empty name" --hca mlx5_1:2,
    devices "device mlx5_0 state=init"
    refused "no port is ACTIVE; there are mlx5_0:1 (INIT)"
    devices "device mlx5_0 open=EACCES"
    refused "libibverbs finds no port to use; mlx5_0: Permission denied"
    devices "list ENOSYS"
    refused "libibverbs finds no device: Function not implemented"
    devices "device mlx5_0-1 mtu=1024"
    refused "--path-mtu 4096: mlx5_0 port 1 on $here has 1024" --path-mtu 4096
    verbs 2 --plan plan.tsv --path-mtu 512 --sl 3 --traffic-class 104
    all_ok
    RAILGAUGE_IBVERBS=$PWD/none.so refused "libibverbs cannot be loaded: $PWD/none.so"
}

@test "addresses that do not meet are refused with the reason, and those that do are found" {
    need_verbs
    plan "isolated pair_bw 64 64 2 0 0>1" >plan.tsv
    devices "device mlx5_0-1 layer=roce"
    for index in 0 1 2 3; do
        verbs 2 --plan plan.tsv --gid-index $index
        all_ok
    done
    verbs 2 --plan plan.tsv --gid-index 5
    [[ $status -ne 0 && $output == *"--gid-index 5: that entry of mlx5_0 port 1 is empty"* ]]
    verbs 2 --plan plan.tsv --gid-index 9
    [[ $status -ne 0 && $output == *"--gid-index 9: mlx5_0 port 1 has 8 entries"* ]]
    devices "device mlx5_0 layer=roce" "gid 1 v2 fe80::1" "device mlx5_1 layer=roce" "gid 1 v1 fe80::2"
    verbs 2 --plan plan.tsv --gid-index 1
    [[ $status -ne 0 && $output == *"GID 1 of mlx5_"*"no packet would arrive"* ]]
    verbs 2 --plan plan.tsv
    [[ $status -ne 0 && $output == *"have no addresses of one type and family"* ]]
    devices "device mlx5_0 layer=roce" "device mlx5_1"
    verbs 2 --plan plan.tsv
    [[ $status -ne 0 && $output == *" is Ethernet"*" is InfiniBand"*"no packet would arrive"* ]]
    devices "device mlx5_0 layer=roce" "device mlx5_1 layer=roce subnet=b"
    verbs 2 --plan plan.tsv
    [[ $status -eq 2 && $(column note points.tsv) == *"queue pair to RTR: Connection timed out (nobody answers for the peer's address)"* ]]
}

@test "no room: memory that may not be locked, queue pairs that are all in use" {
    need_verbs
    pair
    devices "device mlx5_0-1 memlock=65536"
    verbs 2 --plan plan.tsv
    [[ $status -ne 0 && "$output$(cat points.tsv)" == *"mlx5_"*"cannot be registered: Cannot allocate memory"* ]]
    devices "device mlx5_0-1 max_qp=2"
    verbs 2 --plan plan.tsv --qps 3
    [[ $status -ne 0 && "$output$(cat points.tsv)" == *"no queue pair: Cannot allocate memory"* ]]
}

@test "a rank that is killed is named at once" {
    need_verbs
    devices "device mlx5_0-3"
    FAKE_VERBS_FAULT=die@2:40 run timeout 120 railgauge run -o dir -t verbs --ranks 4 --no-plots "${every_op[@]}" -n 4 -w 0
    echo "$output"
    [ "$status" -eq 75 ]
    [ "$(jq -r '.kind, .culprit.rank' dir/verdict.json | xargs)" = "dead 2" ]
    took=$(($(stat -c %.6Y dir/verdict.json | tr -d .) - $(stat -c %.6Y devices.txt.died | tr -d .)))
    echo "named after $took us"
    [ "$took" -gt 0 ]
    [ "$took" -lt 2000000 ]
}

@test "a NIC that does nothing any more: who waits for what" {
    need_verbs
    devices "device mlx5_0-1"
    pair
    FAKE_VERBS_FAULT=hang@mlx5_0:5 RAILGAUGE_WATCH=off verbs 2 --plan plan.tsv --hang-after 1s
    [ "$status" -eq 2 ]
    [[ $(column note points.tsv) == *"nothing is done or arrives for "*", and no error is told"* ]]
}

@test "the network is NCCL's: class, level, key, ports and GID of its variables, unless told otherwise" {
    need_verbs
    devices "device mlx5_0-3 layer=roce"
    pair
    export NCCL_IB_TC=0x60 NCCL_IB_SL=3 NCCL_IB_PKEY=0 NCCL_IB_HCA==mlx5_2,mlx5_3
    verbs 2 --plan plan.tsv
    [ "$status" -eq 0 ]
    [[ $output == *"verbs as NCCL's variables say: traffic class 96 (NCCL_IB_TC), service level 3 (NCCL_IB_SL), partition key 0 (NCCL_IB_PKEY), ports =mlx5_2,mlx5_3 (NCCL_IB_HCA)"* ]]
    [[ $(jq -r .provenance.verbs topology.json) == *"traffic class 96, service level 3, partition key 0"* ]]
    [[ $(jq -r .provenance.verbs_ports topology.json) == *"mlx5_2:1"*"mlx5_3:1"* ]]
    verbs 2 --plan plan.tsv --traffic-class 8 --hca mlx5_0,mlx5_1
    [[ $output == *"say: service level 3 (NCCL_IB_SL), partition key 0 (NCCL_IB_PKEY)"* ]]
    [[ $(jq -r .provenance.verbs topology.json) == *"traffic class 8, service level 3"* ]]
    [[ $(jq -r .provenance.verbs_ports topology.json) == *"mlx5_0:1"*"mlx5_1:1"* ]]
    NCCL_IB_TC=high verbs 2 --plan plan.tsv
    [ "$status" -eq 78 ]
    [[ $output == *"NCCL_IB_TC=high is not a number from -1 to 255"* ]]
    NCCL_IB_PKEY=1000 verbs 2 --plan plan.tsv
    [ "$status" -eq 78 ]
    [[ $output == *"partition key 1000: "* ]]
}

@test "a device of AWS is told by its driver, not by the subnet manager that it lacks" {
    need_verbs
    devices "device mlx5_0-1"
    pair
    mkdir -p sys/class/infiniband/mlx5_1/device drivers/efa
    ln -s ../../../../../drivers/efa sys/class/infiniband/mlx5_1/device/driver
    RAILGAUGE_SYS=$PWD/sys verbs 2 --plan plan.tsv --hca mlx5_0,mlx5_1
    [ "$status" -eq 78 ]
    [[ $output == *"mlx5_1 is an Elastic Fabric Adapter (driver efa): it has no reliable queue pairs"* ]]
}

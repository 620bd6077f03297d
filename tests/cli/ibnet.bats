#!/usr/bin/env bats
# ibnet.bats - discover --ibnet: a subnet's text as topology, alone and beside what is known.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
    net=$top/tests/ib/rails-hdr.net
}

@test "a subnet alone: hosts, NICs on their leaves, groups of leaves" {
    run -0 --separate-stderr railgauge discover --ibnet "$net" --gpus-per-host 4 -o t.json
    [ "${lines[0]}" = "topology   8 hosts, 32 endpoints" ]
    [[ $output == *"2 leaves (ibnet)"* ]]
    [[ $output == *"rail     same leaf, 192 pairs"* ]]
    [[ $output == *"network    8 leaves, 2 spines; 32 adapters of 8 hosts"$'\n'"cables     48: 4xHDR (25.0 GB/s)"* ]]
    [ "$(jq -r '.claims.rows[] | select(.[0] == "ibnet") | "\(.[1]) \(.[3]): \(.[4])"' t.json)" = "leaf leaf-su0-r[0-3]: su0n[00-03]
leaf leaf-su1-r[0-3]: su1n[00-03]" ]
    # NIC, leaf and port there, as the file has them.
    [ "$(jq -r '.hosts.rows as $h | .nics.rows as $n | .ports.rows[] | "\($h[$n[.[0]][0]][0]) \($n[.[0]][1]) \(.[7]) \(.[8]) \(.[9])"' t.json | sed -n '/^su1n02 mlx5_3/p')" \
        = "su1n02 mlx5_3 leaf-su1-r3 3 ibnet" ]
    railgauge discover t.json >again.txt
    diff <(printf '%s\n' "$output") again.txt
}

@test "beside a topology: its own hosts only, NICs that it has are not doubled" {
    railgauge discover -q --fabric hgx-h200 --racks 1 -o preset.json
    host=$(jq -r '.hosts.rows[1][0]' preset.json)
    sed "s/su0n01/$host/" "$net" >mine.net
    hosts=$(jq '.hosts.rows | length' preset.json)
    nics=$(jq '.nics.rows | length' preset.json)
    railgauge discover -q preset.json --ibnet mine.net -o both.json
    [ "$(jq '.hosts.rows | length' both.json)" -eq "$hosts" ]
    [ "$(jq '.nics.rows | length' both.json)" -eq "$nics" ]
    [ "$(jq -r --arg host "$host" '.hosts.rows as $h | .nics.rows as $n | [.ports.rows[] |
        select(.[9] == "ibnet") | select($h[$n[.[0]][0]][0] == $host) | "\($n[.[0]][1]) \(.[7])"] | .[0:4][]' both.json)" = "mlx5_0 leaf-su0-r0
mlx5_1 leaf-su0-r1
mlx5_2 leaf-su0-r2
mlx5_3 leaf-su0-r3" ]
    [ "$(jq '[.ports.rows[] | select(.[9] == "ibnet")] | length' both.json)" -eq 4 ]
}

@test "two subnets that no cable joins stay apart" {
    sed -e 's/leaf-/storage-/g; s/spine-/storage-spine-/g; s/mlx5_/mlx5_1/g' -e 's/b8cef6/b8cef7/g; s/a088c2/a088c3/g' "$net" >storage.net
    run -0 --separate-stderr railgauge discover --ibnet "$net" --ibnet storage.net -o t.json
    [[ $output == *"network    16 leaves, 4 spines; 64 adapters of 8 hosts"* ]]
    [[ $output == *"subnets    8 leaves, 2 spines, 32 adapters"$'\n'"           8 leaves, 2 spines, 32 adapters"* ]]
    [ "$(jq '.hosts.rows | length' t.json)" -eq 8 ]
    [ "$(jq '.nics.rows | length' t.json)" -eq 64 ]
}

@test "what is written fits the schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    railgauge discover -q --ibnet "$net" -o t.json
    for f in t.json "$top/tests/golden/topology-ibnet.json"; do
        python3 -c 'import json, jsonschema, sys
jsonschema.Draft202012Validator(json.load(open(sys.argv[2]))).validate(json.load(open(sys.argv[1])))' \
            "$f" "$top/topo/schema/topology.schema.json"
    done
}

@test "the picture tells mixed rates, most first" {
    sed '0,/4xHDR/s//2xEDR/; s/\(spine-1" lid 0\) 4xHDR/\1/' "$net" >mixed.net
    run -0 --separate-stderr railgauge discover --ibnet mixed.net
    [[ $output == *"cables     48: 47 4xHDR (25.0 GB/s), 1 2xEDR (6.25 GB/s)"* ]]
}

@test "adapters that were never named are known by the GUIDs of NICs" {
    railgauge discover -q --ibnet "$net" -o named.json
    # What the hosts themselves tell: NICs with GUIDs, no leaves.
    jq 'del(.net_nodes, .cables, .claims) | .ports.rows |= map(.[7] = null | .[8] = null | .[9] = "none" | .[10] = null | .[14] = "none")' named.json >hosts.json
    railgauge seal hosts.json
    sed 's/"su[01]n0[0-3] mlx5_[0-3]"/"MT4129 ConnectX7   Mellanox Technologies"/' "$net" >unnamed.net
    run -65 --separate-stderr railgauge discover --ibnet unnamed.net
    [ "$stderr" = "railgauge discover: no host: 32 adapters with no host's name; give the topology.json of the hosts, whose GUIDs tell them, as FILE beside it" ]
    run -0 --separate-stderr railgauge discover hosts.json --ibnet unnamed.net -o both.json
    [[ $output == *"network    8 leaves, 2 spines; 32 adapters of 8 hosts"$'\n'* ]]
    leaves='.nics.rows as $n | .ports.rows[] | "\($n[.[0]][0]) \($n[.[0]][1]) \(.[7]) \(.[8])"'
    diff <(jq -r "$leaves" named.json) <(jq -r "$leaves" both.json)
    diff <(jq -c '.claims.rows' named.json | sed 's/rails-hdr/unnamed/g') <(jq -c '.claims.rows' both.json)
}

# cut HOST KEEP - rails-hdr.net where that host has its first KEEP adapters only.
cut() {
    awk -v host="$1" -v keep="$2" 'BEGIN { RS = ""; ORS = "\n\n" }
        NR == FNR { if (index($0, "\"" host " ") && /\nCa|^Ca/) { match($0, /"H-[0-9a-f]+"/); if (++n > keep) drop[substr($0, RSTART, RLENGTH)] }; next }
        { for (id in drop) { if (index($0, "Ca\t1 " id)) next; gsub("\n[^\n]*" id "[^\n]*", "") } print }' "$net" "$net"
}

@test "a host with one adapter left stays with its group, and takes nobody's leaf away" {
    cut su0n01 1 >cut.net
    [ "$(grep -c '^Ca.*su0n01' cut.net)" -eq 1 ]
    railgauge discover -q --ibnet "$net" --gpus-per-host 4 -o whole.json
    railgauge discover -q --ibnet cut.net --gpus-per-host 4 -o cut.json
    railgauge discover -q --ibnet cut.net -o hosts.json
    for f in whole cut hosts; do
        railgauge export -f slurm-tree "$f.json" | grep -v '^#' >"$f.conf"
    done
    [ "$(cat whole.conf)" = "SwitchName=root Switches=leaf[01-02]
SwitchName=leaf01 Nodes=su0n[00-03]
SwitchName=leaf02 Nodes=su1n[00-03]" ]
    diff whole.conf cut.conf
    diff whole.conf hosts.conf # hosts of which nobody knows GPUs
}

@test "an export that lacks hosts says so and is refused, unless asked for" {
    railgauge discover -q --ibnet "$net" -o t.json
    # A host of which nobody knows anything.
    jq '.hosts.rows += [["login", null, null, null, null]]' t.json >more.json
    railgauge seal more.json
    for format in slurm-tree slurm-block slurm-yaml k8s-labels volcano; do
        run -2 --separate-stderr railgauge export -f $format more.json -o out
        [[ $stderr == *"1 of 9 hosts is not in it, because "*" known: login; --partial writes it all the same" ]]
        [ ! -e out ]
        run -0 --separate-stderr railgauge export -f $format more.json --partial
        [[ $stderr == *"1 of 9 hosts is not in it, because "*" known: login" ]]
        [[ $output == *su1n* ]]
        run -0 --separate-stderr railgauge export -f $format t.json
        [ -z "$stderr" ]
    done
}

@test "a host with a name of its own and few adapters is no compute host, and not bad" {
    # su1n03 keeps two of its four; then it is called as a manager is.
    cut su1n03 2 >few.net
    sed 's/su1n03/ufm-a/' few.net >ufm.net
    run -1 railgauge lint --ibnet few.net
    [[ $output == *"BAD   rails     su1n03: 2 adapters in the network where 3 of the 4 hosts "* ]]
    run -0 railgauge lint --ibnet ufm.net
    [[ $output == *"note  rails     ufm-a: 2 adapters in the network where 3 of the 4 hosts "*"perhaps another kind of host"* ]]
    railgauge discover -q --ibnet ufm.net -o t.json
    [ "$(jq -r '.hosts.rows as $h | .nics.rows as $n | .ports.rows[] | select($h[$n[.[0]][0]][0] == "ufm-a") | "\(.[12]) \(.[13])"' t.json | uniq)" \
        = "unknown 2 adapters where most hosts have 4, and another name" ]
    [ "$(jq -r '.hosts.rows as $h | .nics.rows as $n | .ports.rows[] | select($h[$n[.[0]][0]][0] != "ufm-a") | .[12]' t.json | sort | uniq -c | xargs)" = "28 compute" ]
}

#!/usr/bin/env bats
# explain.bats - railgauge explain: the way of a pair, its measurements and what is odd about it.

bats_require_minimum_version 1.5.0

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    railgauge run --transport sim --no-plots --fabric gb200-nvl72 --racks 2 --noise 2% --op pairs --fault slow-nic=17:0.6 -o c || [ $? -eq 1 ]
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

@test "a slow NIC is named, and what the pair should reach" {
    run -0 railgauge explain c r00n04:1 r01n04:1
    [[ $output == *"tier rail"*"r00n04 GPU 1, PCIe to its NIC"*"r00n04 mlx5_1 (InfiniBand): 50.0 GB/s (rate of the port)  <- the narrowest"* ]]
    [[ $output == *"leaf leaf-00-1"*"r01n04 mlx5_1"* ]]
    [[ $output == *"NIC mlx5_1 of r00n04 (GPU 1): 60 % of normal"*"every tier that crosses NICs"* ]]
    run -0 railgauge explain c 17 89 --json
    [ "$(jq -r '"\(.tier) \(.src_host) \(.dst_host) \(.of_narrowest > 0.55 and .of_narrowest < 0.65)"' <<< "$output")" = "rail r00n04 r01n04 true" ]
}

@test "NVLink of a preset: what is not visible is said, not made up" {
    run -0 railgauge explain c r00n00 r00n01
    [[ $output == *"tier mnnvl"*"NVSwitches of NVLink domain domain-00"* ]]
    [[ $output == *"NVLinks of r00n00 GPU 0: no driver told of this GPU"* ]]
    [[ $output != *"narrowest"* ]]
}

@test "a matrix alone, other rails, and what is no pair" {
    run -0 railgauge explain c/matrix.json 0 73
    [[ $output == *"the two are on different rails, rail-0 and rail-1"* ]]
    [[ $output == *"of the tier, "*" pairs"* ]]
    run -64 railgauge explain c 3 3
    [[ $output == *"3 and 3 are the same endpoint"* ]]
    run -64 railgauge explain c 0 nohost:1
    [[ $output == *"no endpoint nohost:1 here"* ]]
    run -64 railgauge explain c 0
    run -66 railgauge explain nowhere 0 1
}

@test "a preset alone: the way and the data sheet, no directory needed" {
    run -0 railgauge explain --fabric hgx-h100 --racks 2 r00n00:0 r01n00:0
    [[ $output == *"tier rail"*"r00n00 mlx5_0 (InfiniBand): 50.0 GB/s (rate of the port)  <- the narrowest"* ]]
    [[ $output == *"published"*"pair_bw "*"49.0 GB/s  of the tier"* ]]
    [[ $output != *"measured"* ]]
    run -0 railgauge explain 0 9 --fabric hgx-h100 --json
    [ "$(jq -r '"\(.src_host) \(.dst_host)"' <<< "$output")" = "r00n00 r00n01" ]
    run -64 railgauge explain --fabric hgx-h100 matrix.json 0 9
    [[ $output == *"give with --fabric two endpoints"* ]]
    run -64 railgauge explain c 0 9 --racks 2
    [[ $output == *"--racks needs --fabric"* ]]
}

@test "files of others fill in the way: leaf, port, speed, cables and spine of a subnet, PCIe of hosts" {
    tests=$BATS_TEST_DIRNAME/..
    sed -E 's/su([01])n0/r0\1n0/' "$tests/ib/rails-hdr.net" > rails.net
    # A recording with the addresses that the preset has.
    sed 's/:18:00/:10:00/;t;s/:28:00/:18:00/;t;s/:38:00/:20:00/;t;s/:48:00/:28:00/' "$tests/machines/smi-xml/hgx.xml" > gpus.xml
    run -0 railgauge explain --fabric hgx-h200 --racks 2 --ibnet rails.net --smi-xml r00n01=gpus.xml --smi-xml r01n03=gpus.xml r00n01:2 r01n03:3
    [ "${lines[3]}" = "  r00n01 GPU 2, PCIe to its NIC: 63.0 GB/s (PCIe generation 5 x16)" ]
    [[ ${lines[4]} == "  r00n01 mlx5_2 (InfiniBand), compute (preset), rail 2 (ibnet): "*" (rate of the port)"* ]]
    [ "${lines[5]}" = "  leaf leaf-su0-r2 port 2" ]
    [[ ${lines[6]} == "  spine-0 or another spine: 50.0 GB/s (2 cables of HDR up, 2 of HDR down, shared by the whole leaf)"* ]]
    [ "${lines[7]}" = "  leaf leaf-su1-r3 port 4" ]
    [[ ${lines[8]} == "  r01n03 mlx5_3 (InfiniBand), compute (preset), rail 3 (ibnet): "* ]]
    [ "${lines[9]}" = "  r01n03 GPU 3, PCIe from its NIC: 63.0 GB/s (PCIe generation 5 x16)" ]
    [[ $output != *"not visible"* ]]
    # Endpoints that the matrix has not: no guess which are meant.
    run -65 railgauge explain --fabric hgx-h200 --racks 2 --smi-xml stranger=gpus.xml 0 9
    [[ $output == *"the files tell of 72 endpoints where the matrix has 64"* ]]
}

@test "JSON keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    railgauge explain c 17 89 --json > slow.json
    railgauge explain c r00n00 r00n01 --json > nvlink.json
    railgauge explain --fabric hgx-h200 0 9 --json > preset.json
    for f in slow nvlink preset; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
            "$BATS_TEST_DIRNAME/../../src/schema/explain.schema.json" $f.json
    done
}

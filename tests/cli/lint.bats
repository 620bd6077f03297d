#!/usr/bin/env bats
# lint.bats - railgauge lint: the odd one out, and its exit codes.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    railgauge discover --fabric hgx-h100 --racks 2 -o all.json -q
}

# change PROGRAM: all.json after a jq program is odd.json.  Rows of NICs: host, name, busid, link
# layer, rate, up, ...; of endpoints: ..., numa 7, nic 8.
change() {
    jq "$1" all.json > odd.json
    railgauge seal odd.json
}

@test "equal hosts: nothing is odd" {
    run -0 railgauge lint all.json
    [ "$output" = "8 hosts, 64 GPUs, 64 NICs: 0 bad, 0 worth knowing" ]
    run -0 railgauge lint all.json --json
    [ "$(jq -c . <<< "$output")" = '{"format":"railgauge-lint","version":1,"bad":0,"findings":[]}' ]
}

@test "an adapter that is down and one that is slow are named with what the others have" {
    change '.nics.rows[19][5] = false | .nics.rows[42][4] = 25e9'
    run -1 railgauge lint odd.json
    [[ $output == *"BAD   hcas      r00n02: 7 HCAs up where 7 hosts have 8: mlx5_3 is down"* ]]
    [[ $output == *"BAD   nic       r01n01 mlx5_2: 200 Gb/s where 7 others have 400"* ]]
    [[ $output == *"8 hosts, 64 GPUs, 64 NICs: 2 bad, 0 worth knowing"* ]]
    run -1 railgauge lint odd.json --json
    [ "$(jq -r '.findings[] | "\(.kind) \(.what) \(.bad)"' <<< "$output" | xargs)" = "hcas r00n02 true nic r01n01 mlx5_2 true" ]
    run -1 railgauge lint odd.json -q
    [ -z "$output" ]
}

@test "firmware and a driver that others do not have are worth knowing" {
    change '.nic_versions = {columns: ["nic", "firmware", "driver"], rows: [range(64) | [., (if . == 19 then "28.40.1000" else "28.39.1002" end), "mlx5_core"]]}'
    run -0 railgauge lint odd.json
    [[ $output == *"r00n02 mlx5_3: firmware 28.40.1000 where 7 others have 28.39.1002"* ]]
    [[ $output == *"0 bad, 1 worth knowing"* ]]
}

@test "one file a host: they are compared with each other, a host that is there twice is refused" {
    for h in a b c; do
        jq --arg h $h '.hosts.rows = [.hosts.rows[0] | .[0] = $h | .[3] = (if $h == "c" then 64 else 112 end)]
            | .nics.rows = [.nics.rows[] | select(.[0] == 0)] | .endpoints.rows = [.endpoints.rows[] | select(.[0] == 0)]' \
            all.json > $h.json
        railgauge seal $h.json
    done
    run -1 railgauge lint a.json b.json c.json
    [[ $output == *"BAD   cores     c: 64 cores where 2 hosts have 112"* ]]
    run -65 railgauge lint a.json b.json a.json
    [[ $output == *"a.json: host a is there twice"* ]]
    run -66 railgauge lint nowhere.json
    run -64 railgauge lint
}

@test "one host alone: nothing to compare" {
    jq '.hosts.rows = [.hosts.rows[0]] | .nics.rows = [.nics.rows[0]] | .endpoints.rows = [.endpoints.rows[0]]' all.json > one.json
    railgauge seal one.json
    run -2 railgauge lint one.json
}

@test "a campaign's directory and a matrix hold a topology too" {
    railgauge run --transport sim --no-plots --fabric hgx-h100 --racks 1 --op pairs -o c
    for f in c c/topology.json; do
        run -0 railgauge lint $f
        [ "$output" = "4 hosts, 32 GPUs, 32 NICs: 0 bad, 0 worth knowing" ]
    done
    run -0 railgauge lint c/matrix.json
    [[ $output == "4 hosts, 32 GPUs, "*": 0 bad, 0 worth knowing" ]]
    jq '.endpoints.rows |= .[:8] | .hosts.rows |= .[:1] | .nics.rows |= .[:8]' c/topology.json > t && mv t c/topology.json
    railgauge seal c/topology.json
    run -65 railgauge explain c 0 9
    [[ $output == *"c: topology.json is of 8 endpoints, matrix.json of 32"* ]]
}

@test "a GPU with fewer links in NCCL's file is said once" {
    awk '/count="5"/ && !done { sub(/"5"/, "\"4\""); done = 1 } 1' \
        "$BATS_TEST_DIRNAME/../golden/nccl/hgx-h200-8gpu-8cx7.xml" > node7.xml
    run -1 railgauge lint --nccl-topo node7.xml
    [ "${#lines[@]}" -eq 2 ]
    [ "${lines[0]}" = "BAD   nvlink    node7 GPU 0: 17 NVLinks where 7 others have 18" ]
}

@test "JSON keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    change '.nics.rows[19][5] = false'
    railgauge lint all.json --json > none.json
    railgauge lint odd.json --json > found.json || true
    for f in none.json found.json; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
            "$BATS_TEST_DIRNAME/../../src/schema/lint.schema.json" $f
    done
}

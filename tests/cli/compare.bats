#!/usr/bin/env bats
# compare.bats - railgauge compare: two campaigns on the same machine, what changed and what did not.

bats_require_minimum_version 1.5.0

load rejects

top=$BATS_TEST_DIRNAME/../..

# site SHARE: site.json, GB200 with all that moves bytes at that share of its rate, always of one name.
site() {
    jq --argjson k "$1" '.name = "site" | (.tiers[] | .bandwidth_Bps.value, .bidirectional_Bps.value) *= $k
        | .collectives[] |= (.busbw_Bps.value *= $k | del(.points))' "$top/topo/fabrics/gb200-nvl72.json" > site.json
}

# campaign NAME SEED OPTION...: two racks of that site, 3 % noise.
campaign() {
    railgauge run --transport sim --no-plots --fabric ./site.json --racks 2 --noise 3% --no-verdict -o "$1" --sim-seed "$2" "${@:3}"
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    site 1
    campaign before 1
    campaign same 2
    campaign slow 3 --fault slow-nic=17:0.6
    campaign slower 4 --fault slow-nic=17:0.4
    site 0.98
    campaign firmware 5
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

@test "nothing changed: no alarm, and every tier is shown as the same" {
    run -0 railgauge compare before same
    [[ ${lines[0]} == "0 of "*" figures worse, 0 better; "*" points in both" ]]
    [ "$(grep -c '^same    tier' <<< "$output")" -ge 6 ]
    ! grep -E '^(worse|better|new|gone)' <<< "$output"
    run -0 railgauge compare before before --json
    [ "$(jq '[.figures[] | .speed_ratio == 1] | all' <<< "$output")" = true ]
}

@test "2 % less of everything is seen through 3 % of noise, and only where bytes move" {
    run -1 railgauge compare before firmware --json
    [ "$(jq '[.figures[] | select(.what | test("pair_bw")) | .change == "worse" and (.speed_ratio - 0.98 | fabs) < 0.004 and .low < 0.98 + 0.004 and .high > 0.98 - 0.004] | length > 1 and all' <<< "$output")" = true ]
    [ "$(jq '[.figures[] | select(.what | test("pair_latency")) | .change == "same"] | length > 1 and all' <<< "$output")" = true ]
    # The other way round it is better, and nothing to worry about.
    run -0 railgauge compare firmware before
    grep '^better  tier rail, pair_bw ' <<< "$output"
    run -0 railgauge compare before firmware --tolerance 3%
}

@test "parts: new, worse, better, gone" {
    run -1 railgauge compare before slow
    [[ $output == *$'\n'"new     NIC mlx5_1 of r00n04 (GPU 1)       -   0."* ]]
    run -1 railgauge compare slow slower
    [[ $output == *$'\n'"worse   NIC mlx5_1 of r00n04 (GPU 1)    0."* ]]
    run -0 railgauge compare slower slow
    [[ $output == *$'\n'"better  NIC mlx5_1 of r00n04"* ]]
    run -0 railgauge compare slow before
    [[ $output == *$'\n'"gone    NIC mlx5_1 of r00n04"* ]]
    run -0 railgauge compare slow slow --json
    [ "$(jq -r '.parts[] | .change, .kind' <<< "$output" | paste -sd' ')" = "same nic" ]
}

@test "collectives are told by the shape of their groups, as the plan has them" {
    run -0 railgauge compare before before --all
    [[ $output == *"same    all_reduce, 144r 2d x72, 2 racks, large "* ]]
    [[ $output == *"same    all_reduce, 4r 1d x4, large "* ]]
    cp -r before unplanned
    rm unplanned/plan.tsv
    run -0 railgauge compare unplanned unplanned --all
    [[ $output == *"same    all_reduce, 144 ranks, large "* ]]
}

@test "firmware and drivers of NICs are versions" {
    cp -r before old
    cp -r before new
    jq -c 'del(.checksum) | .nic_versions = {columns: ["nic", "firmware", "driver"], rows: [range(.nics.rows | length) | [., "28.39.1002", "mlx5_core"]]}' before/topology.json > old/topology.json
    jq -c '.nic_versions.rows[0][1] = "28.40.1000"' old/topology.json > new/topology.json
    run -0 railgauge compare old new
    [[ $output == *$'\n'"NIC firmware  28.39.1002  28.39.1002 on "*", 28.40.1000 on 1" ]]
}

@test "unlike campaigns are refused with what differs" {
    railgauge run --transport sim --no-plots --fabric hgx-h100 --racks 2 --op pair_bw --no-verdict -o hgx
    rejects compare 65 'before is of endpoints "NVIDIA GB200", hgx of "NVIDIA H100 SXM": they cannot be compared' before hgx
    railgauge run --transport sim --no-plots --fabric gb200-nvl72 --racks 2 --op pair_bw --no-verdict -o other
    rejects compare 65 'fabric "site", other of "gb200-nvl72"' before other
    rejects compare 65 "before/matrix.json is not a campaign's directory" before before/matrix.json
    rejects compare 64 'give two campaign directories' before
    rejects compare 66 'nowhere' before nowhere
}

@test "JSON keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    railgauge compare before slow -o c.json -q || [ $? -eq 1 ]
    python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' "$top/src/schema/compare.schema.json" c.json
}

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

@test "reductions of another type are not compared" {
    local name type
    for name in bfloat16 uint32 unknown; do
        mkdir -p "typed-$name"
        cp same/*.tsv same/topology.json "typed-$name"
        type="$name sum"
        jq --arg type "$type" 'if $type != "unknown sum" then .collectives[].data = $type else . end' same/matrix.json >"typed-$name/matrix.json"
        railgauge seal "typed-$name/matrix.json"
    done
    rejects compare 65 "typed-bfloat16 has all_gather of bfloat16 sum, typed-uint32 of uint32 sum" typed-bfloat16 typed-uint32
    run -0 railgauge compare typed-bfloat16 typed-bfloat16
    run -0 railgauge compare typed-bfloat16 typed-unknown
}

@test "nothing changed: no alarm, and every tier is shown as the same" {
    run -0 railgauge compare before same
    [[ ${lines[0]} == "0 of "*" figures worse, 0 better; "*" points in both" ]]
    [ "$(grep -c '^same    tier' <<< "$output")" -ge 6 ]
    run ! grep -E '^(worse|better|new|gone)' <<< "$output"
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
    [[ $output == *$'\n'"new     NIC mlx5_1 of r00n04 (GPU 1)  -       "[56]?" % of normal"* ]]
    run -1 railgauge compare slow slower
    [[ $output == *$'\n'"worse   NIC mlx5_1 of r00n04 (GPU 1)  "??" % of normal"* ]]
    run -0 railgauge compare slower slow
    [[ $output == *$'\n'"better  NIC mlx5_1 of r00n04"* ]]
    run -0 railgauge compare slow before
    [[ $output == *$'\n'"gone    NIC mlx5_1 of r00n04"* ]]
    run -0 railgauge compare slow slow --json
    [ "$(jq -r '.parts[] | .change, .kind' <<< "$output" | paste -sd' ')" = "same nic" ]
}

@test "collectives are told by the shape of their groups, as the plan has them" {
    run -0 railgauge compare before before --all
    [[ $output == *"same    all_reduce, 144 ranks, 2 domains of 72, 2 racks, large "* ]]
    [[ $output == *"same    all_reduce, 4 ranks, 1 domain, large "* ]]
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
    railgauge seal old/topology.json new/topology.json >/dev/null
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

# week NAME SHARE K OPTION...: a small campaign of week K, 3 % noise, of what moves bytes at that share of its rate.
week() {
    jq --argjson k "$2" '.name = "site" | (.tiers[] | .bandwidth_Bps.value, .bidirectional_Bps.value) *= $k' \
        "$top/topo/fabrics/hgx-h100.json" > hgx.json
    railgauge run --transport sim --no-plots --fabric ./hgx.json --racks 4 --noise 3% --no-verdict -o "$1" \
        --op pair_bw,pair_latency -b 64M -e 64M --epochs 2 --sim-seed "$3" "${@:4}"
    sed -i "2s/\"time_utc\":\"[^\"]*/\"time_utc\":\"$(date -ud "2026-01-05 + $((7 * $3)) days" +%FT%TZ)/" "$1/points.tsv"
}

@test "a drift of 1 % a week is found in a history, and what came and went, whatever the order of its words" {
    for k in 0 1 2 3 4 5 6 7; do
        faults=()
        [ $k -lt 5 ] || faults=(--fault slow-nic=9:0.6)
        [ $k -ne 3 ] || faults=(--fault slow-nic=3:0.5)
        week "w$k" "$(jq -n "pow(0.99; $k)")" $k "${faults[@]}"
    done
    jq -c 'del(.checksum) | .nic_versions = {columns: ["nic", "firmware", "driver"], rows: [[0, "28.40.1000", null]]}' w6/topology.json > t.json
    mv t.json w6/topology.json
    railgauge seal w6/topology.json
    ln -s w7 last
    cp -r before older
    sed -i '2s/"time_utc":"[^"]*/"time_utc":"2025-12-29T00:00:00Z/' older/points.tsv
    run -1 railgauge compare --history w3 w7 w0 w1 last w2 w4 w5 w6 older
    [[ ${lines[0]} == "8 campaigns: 0 of "*" figures below the baseline, "*" drift down; 1 part new; 1 part gone; 2 changes of versions; 2 campaigns left out" ]]
    [[ $output == *$'\n'"same  falling  tier nvlink, pair_bw "*" -"[01].[09]?" % a week "* ]]
    [[ $output == *$'\n'"same  none     tier rail, pair_latency "* ]]
    [[ $output == *$'\n'"new     NIC "*" of "*" since 2026-02-09 00:00"* ]]
    [[ $output == *$'\n'"gone    NIC "*" on 2026-01-26 00:00"* ]]
    [[ $output == *$'\n'"2026-02-16 00:00  NIC firmware  not told    28.40.1000"$'\n'"2026-02-23 00:00  NIC firmware  28.40.1000  not told"* ]]
    [[ $output == *$'\n'"older     is of endpoints \"NVIDIA GB200\", "*" of \"NVIDIA H100 SXM\""* ]]
    [[ $output == *"last      is the same as w7"* ]]
    run -1 railgauge compare --history w? --json
    [ "$(jq '[.figures[] | select(.what | test("pair_bw")) | .drift == "falling" and (.drift_per_week + 0.01 | fabs) < 0.002 and .drift_low < .drift_per_week and .drift_high > .drift_per_week and (.campaigns | length) == 8] | length > 2 and all' <<< "$output")" = true ]
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(sys.stdin), json.load(open(sys.argv[1])))' "$top/src/schema/history.schema.json" <<< "$output"
}

@test "a history without change is quiet; its last campaign is held against all others" {
    for k in 0 1 2 3; do week "s$k" 1 $k; done
    run -0 railgauge compare --history s0 s1 s2 s3 --all
    [[ ${lines[0]} == "4 campaigns: 0 of "*" below the baseline, 0 drift down; too few campaigns to tell drift" ]]
    week fell 0.97 4
    run -1 railgauge compare --history fell s?
    [[ ${lines[0]} != *"stepped"* ]]
    [[ $output == *$'\n'"worse  unsure  tier nvlink, pair_bw "*" -"[23].*" % "* ]]
    week low 0.97 5
    run -1 railgauge compare --history fell s? low
    [[ ${lines[0]} == "6 campaigns: 0 of 6 figures below the baseline, 0 drift down; 3 stepped down, 0 up" ]]
    [[ $output == *$'\n'"same  none   tier nvlink, pair_bw "*" -3."*" % since 2026-02-02 00:00 "* ]]
    rejects compare 65 "only 2 campaigns can be compared; fell is of endpoints" --history same before fell
    rejects compare 64 "two campaigns are compared; --history takes more" s0 s1 s2
    rejects compare 66 nowhere --history s0 s1 nowhere
}

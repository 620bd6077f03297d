#!/usr/bin/env bats
# fit.bats - railgauge fit on simulated campaigns whose truth is known.

bats_require_minimum_version 1.5.0

campaign() { # ARG...
    railgauge run --transport sim --no-plots -o "$BATS_TEST_TMPDIR/c" "$@" >"$BATS_TEST_TMPDIR/log" 2>&1 || {
        cat "$BATS_TEST_TMPDIR/log"
        return 1
    }
    m=$BATS_TEST_TMPDIR/c/matrix.json
}

beta() { # TIER GB/s: within 1 %
    jq -e --arg t "$1" --argjson want "$2" \
        '.tiers[] | select(.name == $t) | 1e-9 / .curves.uni.beta_s_per_B | . / $want - 1 | fabs < 0.01' "$m"
}

@test "8 racks, 3 % noise, one slow NIC: it alone is named, the tiers are the truth's" {
    campaign --fabric gb200-nvl72 --racks 8 --noise 3% --fault slow-nic=17:0.6
    [ "$(jq -c '[.exceptions[] | .part, .side, .a]' "$m")" = '["endpoint","both",17]' ]
    jq -e '.exceptions[0].factor - 0.6 | fabs < 0.02' "$m"
    beta mnnvl 770
    beta rail 49.2
    beta fabric 49.2
    grep -q '8 racks' <<<"$(jq -r '.findings[].text' "$m")"
}

@test "racks that nobody told are found" {
    campaign --fabric gb200-nvl72 --racks 4 --noise 3% --blind --fault slow-nic=30:0.6:tx
    [ "$(jq -r '.places.levels.rack.source' "$m")" = measured ]
    [ "$(jq -c '.places.levels.rack.at' "$m")" = '[[18,0],[18,1],[18,2],[18,3]]' ]
    [ "$(jq -c '[.exceptions[] | .part, .side, .a]' "$m")" = '["endpoint","tx",30]' ]
}

@test "a healthy fabric has no exception" {
    campaign --fabric hgx-h100 --racks 2 --noise 3%
    [ "$(jq '.exceptions | length' "$m")" -eq 0 ]
}

@test "fit again from the files is the same matrix" {
    campaign --fabric gb200-nvl72 --racks 2 --noise 1%
    run railgauge fit "$BATS_TEST_TMPDIR/c/topology.json" "$BATS_TEST_TMPDIR/c/plan.tsv" \
        "$BATS_TEST_TMPDIR/c/points.tsv" -o "$BATS_TEST_TMPDIR/again.json"
    [ "$status" -eq 0 ]
    [[ $output == "$BATS_TEST_TMPDIR/again.json: 144 endpoints, "*" exceptions, "*" findings" ]]
    [ "$(jq -S 'del(.provenance)' "$m")" = "$(jq -S 'del(.provenance)' "$BATS_TEST_TMPDIR/again.json")" ]
}

@test "points of another plan are refused with both checksums" {
    campaign --fabric gb200-nvl72 --racks 1
    sed -i '1s/plan=[0-9a-f]*/plan=00000001/' "$BATS_TEST_TMPDIR/c/points.tsv"
    run --separate-stderr railgauge fit "$BATS_TEST_TMPDIR/c"
    [ "$status" -eq 65 ]
    [[ $stderr == *"was measured by another plan (00000001) than "* ]]
}

@test "nothing to fit is usage" {
    run --separate-stderr railgauge fit
    [ "$status" -eq 64 ]
    [[ $stderr == *"give a campaign directory, or TOPOLOGY PLAN POINTS"* ]]
    run --separate-stderr railgauge fit /nowhere
    [ "$status" -eq 66 ]
    [ "$stderr" = "railgauge fit: /nowhere/topology.json: No such file or directory" ]
}

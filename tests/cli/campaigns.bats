#!/usr/bin/env bats
# campaigns.bats - a few random campaigns with faults of every kind (tests/random/campaigns.py): each is named as what it
# is and where, nothing healthy is named, and exit codes say it.

bats_require_minimum_version 1.5.0

top=$BATS_TEST_DIRNAME/../..

campaigns() {
    command -v python3 >/dev/null || skip "no python3"
    run python3 "$top/tests/random/campaigns.py" --dir "$BATS_TEST_TMPDIR" --small "$@"
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "random faults are named as their own kind and place" {
    campaigns -n 12 --seed 77
    [[ $output == *"12 campaigns: 0 false parts, 0 pieces, 0 wrong exit codes"* ]]
}

@test "a host and its rack's uplinks: each keeps its own factor and line" {
    campaigns -n 1 --seed 5 --first 71
}

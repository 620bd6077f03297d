#!/usr/bin/env bats
# show.bats - railgauge show: each section as text and as JSON.

bats_require_minimum_version 1.5.0
matrix=tests/golden/matrix.json

@test "without a section: tiers, slow parts, findings" {
    run railgauge show $matrix
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "2 slow parts found" ]
    grep -qx "16 ranks on 8 hosts, over mpi; declared: 2 racks" <<<"$output"
    grep -qE '^rack +24 .* 25 % ' <<<"$output"
    grep -qx 'host n05: 30 % of normal, confidence low' <<<"$output"
    grep -qx '  affects     traffic over tier rack' <<<"$output"
    grep -qx '  evidence    test' <<<"$output"
    grep -q '^contention: racks 0-1: 4 flows at once$' <<<"$output"
}

@test "tiers say what they give at a size, text and JSON" {
    run railgauge show $matrix tiers --bytes 1K
    [ "$status" -eq 0 ]
    [[ ${lines[1]} == *"at 1 KiB"* ]]
    run railgauge show $matrix tiers --bytes 1K --json
    [ "$(jq -r '[.tiers[].name] | join(" ")' <<<"$output")" = "shm rack fabric" ]
    [ "$(jq '[.tiers[] | select(.Bps_at_bytes > 0)] | length' <<<"$output")" -eq 3 ]
    [ "$(jq '.tiers[1].loaded' <<<"$output")" = 0.25 ]
}

@test "collectives carry their share of expected" {
    run railgauge show $matrix collectives
    [ "$status" -eq 0 ]
    # a small message over MPI: nobody can say what it should take
    [ "${lines[0]}" = "Bus bandwidth of collectives on 8 ranks, 8 domains of 1" ]
    [[ ${lines[1]} =~ ^collective\ +8\ KiB\ +time\ +basis$ ]]
    [ "${lines[3]}" = "of expected: not known, because nothing is published for these groups" ]
    run railgauge show $matrix collectives --json
    [ "$(jq '.collectives[0].sizes | length' <<<"$output")" -eq 2 ]
    [ "$(jq '.collectives[0].sizes[0].bytes' <<<"$output")" = 4096 ]
    [ "$(jq '.collectives[0].sizes[0] | [.expected_seconds, .of_expected, .expected_from] | unique' -c <<<"$output")" = '[null]' ]
    # a simulated rack does what its preset says: published, scaled from that, or by the model
    railgauge run --transport sim --fabric gb200-nvl72 --noise 1% --op all_gather,broadcast,pair_bw -b 1M --no-plots \
        -o "$BATS_TEST_TMPDIR/c" >/dev/null
    run railgauge show "$BATS_TEST_TMPDIR/c" collectives
    [[ $output == *$'Bus bandwidth of collectives on 4 ranks, 1 domain\n'*$'Bus bandwidth of collectives on 72 ranks, 1 domain\n'* ]]
    [ "$(grep -cE '^(all_gather|broadcast) .* (9[789]|10[0123]) %  measured$' <<<"$output")" -gt 4 ]
    grep -qE '^of expected: the lowest of these sizes; expected by preset gb200-nvl72, modelled within [0-9]+ % or better$' <<<"$output"
    run railgauge show "$BATS_TEST_TMPDIR/c" collectives --json
    [ "$(jq '[.collectives[].sizes[] | select(.of_expected > 0.97 and .of_expected < 1.03 and .expected_source != null and
              .expected_low_seconds <= .expected_seconds and .expected_seconds <= .expected_high_seconds)] | length' \
         <<<"$output")" -eq "$(jq '[.collectives[].sizes[]] | length' <<<"$output")" ]
}

@test "every directed pair is listed, slow ones with their factor" {
    run railgauge show $matrix pairs --json
    [ "$status" -eq 0 ]
    [ "$(jq '.pairs | length' <<<"$output")" -eq 240 ]
    [ "$(jq '[.pairs[] | select(.src == 10 and .dst == 8)][0].factor' <<<"$output")" = 0.3 ]
    run railgauge show $matrix pairs
    [ "$status" -eq 0 ]
}

@test "findings and points as JSON" {
    run railgauge show $matrix findings --json
    [ "$(jq -r '.exceptions[0].what' <<<"$output")" = "host n05" ]
    [ "$(jq -r '.findings[0].kind' <<<"$output")" = contention ]
    run railgauge show $matrix points --json
    [ "$(jq '[.points[] | select(.what == "all_to_all")] | length' <<<"$output")" -eq 2 ]
}

@test "an unknown section, a missing file and no file are told apart" {
    run --separate-stderr railgauge show $matrix peers
    [ "$status" -eq 64 ]
    [[ $stderr == *'"peers" is not one of: tiers pairs collectives findings parts points'* ]]
    run --separate-stderr railgauge show /nowhere/m.json
    [ "$status" -eq 66 ]
    [ "$stderr" = "railgauge show: /nowhere/m.json: No such file or directory" ]
    run --separate-stderr railgauge show
    [ "$status" -eq 64 ]
    [[ $stderr == *"give a matrix file or a campaign directory"* ]]
}

@test "nccl: what NCCL built, from a topology or a campaign's folder" {
    mkdir "$BATS_TEST_TMPDIR/c"
    cp tests/golden/topology-nccl.json "$BATS_TEST_TMPDIR/c/topology.json"
    run railgauge show "$BATS_TEST_TMPDIR/c" nccl
    [ "$status" -eq 0 ]
    [[ ${lines[0]} == "NCCL       2.28.9+cuda13.0, 16 ranks reported"* ]]
    [[ $output == *"  rank 5: 2 ring channels where the others have 16"* ]]
    COLUMNS=80 run railgauge show "$BATS_TEST_TMPDIR/c" nccl
    [[ $output == *"rank mlx5_0 mlx5_1"* ]] # NICs are a block of their own
    [ "$(wc -L <<<"$output")" -le 80 ]
    railgauge show tests/golden/topology-nccl.json nccl --json | jq -e '.comms.rows | length == 1'
    run railgauge show tests/golden/topology.json nccl
    [ "$status" -eq 65 ]
    [[ $output == *"tests/golden/topology.json has nothing of NCCL"* ]]
}

@test "parts: a name, a place, a price and a next step of each fault that was injected" {
    railgauge run --transport sim --fabric gb200-nvl72 --racks 3 --noise 2% --no-plots --no-verdict --fault slow-nic=17:0.6 \
        --fault slow-host=40:0.7 --fault slow-racks=1-2:0.5 --fault corrupt=33 -o "$BATS_TEST_TMPDIR/c" >/dev/null
    run railgauge show "$BATS_TEST_TMPDIR/c" parts --json
    [ "$status" -eq 0 ]
    [ "$(jq -r '[.parts[].kind] | sort | join(" ")' <<<"$output")" = "gpu host nic rack-pair" ]
    [ "$(jq -r '.parts[0] | "\(.state) \(.name)"' <<<"$output")" = "wrong GPU 1 of r00n08" ]
    [ "$(jq -r '.parts[] | select(.kind == "nic").places[0] | "\(.host) \(.device) \(.rack) \(.leaf) \(.nic)"' <<<"$output")" = \
        "r00n04 1 rack-00 leaf-00-1 mlx5_1" ]
    # what costs more comes first, each with its interval around what was injected
    [ "$(jq '[.parts[] | select(.state == "slow") | .step_share] | . == (sort | reverse) and all(. > 0)' <<<"$output")" = true ]
    [ "$(jq '.parts[] | select(.kind == "nic") | .factor_low <= 0.615 and .factor_high >= 0.585' <<<"$output")" = true ]
    run railgauge show "$BATS_TEST_TMPDIR/c" parts
    [ "${lines[0]}" = "4 faulty parts found: 1 with wrong data, 3 slow" ]
    grep -qE '^NIC mlx5_1 of r00n04 \(GPU 1\): (59|60|61) % of normal, confidence high$' <<<"$output"
    grep -q '^  next step   1. drain r00n08$' <<<"$output"
    grep -qE '^  cost        llama3.1-70b .*: a training step takes [0-9.]+ % longer with this part alone$' <<<"$output"
    run railgauge show $matrix parts
    grep -q '^host n05: ' <<<"$output"
}

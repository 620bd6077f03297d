#!/usr/bin/env bats
# probe.bats - railgauge probe on the simulated fabric; who measures the other transports.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    small=(--fabric gb200-nvl72 --racks 1 --epochs 1 -b 4K -e 64K --op all_reduce,pair_latency)
}

@test "a simulated campaign writes points, plan and topology beside each other" {
    mkdir dir
    run railgauge probe "${small[@]}" -o dir/points.tsv
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    [ "$(ls dir)" = $'plan.tsv\npoints.tsv\ntopology.json' ]
    [[ $(head -n 1 dir/points.tsv) == "# railgauge-points 1 plan="*" endpoints=72 transport=sim topology="???????? ]]
}

@test "the same seed gives the same rows; a second run adds none" {
    railgauge probe "${small[@]}" --noise 3% -o a.tsv
    railgauge probe "${small[@]}" --noise 3% -o b.tsv
    diff <(tail -n +3 a.tsv) <(tail -n +3 b.tsv)
    cp a.tsv before.tsv
    railgauge probe "${small[@]}" --noise 3% -o a.tsv
    cmp a.tsv before.tsv
}

@test "a corrupt endpoint is named, and the campaign could not judge" {
    run railgauge probe "${small[@]}" --fault corrupt=5
    [ "$status" -eq 2 ]
    [[ $output == "railgauge probe: points.tsv: data were wrong in "*" points and 0 failed; first: "*"endpoint 5: byte "*" is wrong" ]]
}

@test "the table of nccl-tests" {
    run railgauge probe "${small[@]}" --format nccl-tests
    [ "$status" -eq 0 ]
    [[ $output == *"# Collective test starting: all_reduce_perf"* ]]
    [[ $output == *"# Out of bounds values : 0 OK"* ]]
    run railgauge probe "${small[@]}" --format osu
    [ "$status" -eq 64 ]
    [ "${lines[0]}" = 'railgauge probe: format "osu" is not nccl-tests' ]
}

@test "--dry-run prints the cost and writes nothing" {
    run railgauge probe "${small[@]}" --dry-run
    [ "$status" -eq 0 ]
    [[ $output == "72 endpoints, "*" of measuring"* ]]
    [ -z "$(ls)" ]
}

@test "words that do not fit the simulated fabric" {
    run railgauge probe --transport sim
    [ "$status" -eq 64 ]
    [ "$output" = "railgauge probe: --transport sim needs --fabric NAME" ]
    run railgauge probe --fabric gb200-nvl72 --topology t.json
    [ "$status" -eq 64 ]
    [ "$output" = "railgauge probe: --topology t.json: the simulated fabric is its own topology" ]
    run railgauge probe --fabric gb200-nvl72 -e 1X
    [ "$status" -eq 64 ]
    [ "${lines[0]}" = 'railgauge probe: --maxbytes: "1X" is not a size such as 8, 32K, 1M or 8G' ]
}

@test "--help knows both sides" {
    run railgauge probe --help=all
    [ "$status" -eq 0 ]
    [[ $output == *"--half-width=SHARE"*"--fault=SPEC"* ]]
    [[ $output == *"mpirun -n 2 railgauge-probe probe --op all_reduce"* ]]
}

# A copy alone in a folder has no railgauge-probe beside it.
@test "every other transport becomes railgauge-probe with the same words" {
    mkdir bin
    cp "$(command -v railgauge)" bin/
    printf '#!/bin/sh\necho "$@"\n' >bin/railgauge-probe
    chmod +x bin/railgauge-probe
    run bin/railgauge probe -t mpi -b 8 --plan "two words.tsv"
    [ "$status" -eq 0 ]
    [ "$output" = "probe -t mpi -b 8 --plan two words.tsv" ]
    rm bin/railgauge-probe
    PATH=/usr/bin:/bin run bin/railgauge probe -t mpi
    [ "$status" -eq 78 ]
    [[ $output == "railgauge probe: railgauge-probe is neither beside railgauge nor in PATH"* ]]
}

#!/usr/bin/env bats
# plan.bats - topology.json becomes plan.tsv; words and files that are refused.

bats_require_minimum_version 1.5.0
load rejects

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    railgauge discover --fabric gb200-nvl72 --racks 2 -q -o topology.json
}

@test "a plan is written and its cost printed" {
    run railgauge plan topology.json
    [ "$status" -eq 0 ]
    [[ ${lines[0]} =~ ^"144 endpoints, "[0-9]+" rounds, about "[0-9]+" points, ".*" moved, about ".*" of measuring"$ ]]
    [ "$(head -n 1 plan.tsv)" = "# railgauge-plan 1" ]
    rounds=${output#*endpoints, }
    [ "$(tail -n +3 plan.tsv | wc -l)" -eq "${rounds%% *}" ]
}

@test "--dry-run writes nothing; the same topology gives the same plan" {
    run railgauge plan topology.json --dry-run
    [ "$status" -eq 0 ]
    [ ! -e plan.tsv ]
    railgauge plan topology.json -o a.tsv
    railgauge plan topology.json -o b.tsv
    cmp a.tsv b.tsv
    railgauge plan topology.json --seed 2 -o c.tsv
    run cmp a.tsv c.tsv
    [ "$status" -eq 1 ]
}

@test "a job's own sizes are measured, however short the ladder is else" {
    longest() { awk -F'\t' -v op="$1" '$3 == op && $5 > most { most = $5 } END { printf "%.0f\n", most }' plan.tsv; }
    railgauge plan topology.json -e 1M --op all_gather,all_reduce
    [ "$(longest all_gather)" -eq 1048576 ]
    # A layer of 3.2 G parameters in bf16 is gathered.
    railgauge plan topology.json -e 1M --op all_gather,all_reduce --for-job "--model llama3.1-405b --layout dp_shard=144"
    [ "$(longest all_gather)" -eq $((8 << 30)) ]
    [ "$(longest all_reduce)" -eq 1048576 ]
    awk -F'\t' '$3 == "all_gather" && $5 > 1048576' plan.tsv | grep -q '0-143$'
}

@test "--exact plays every pair, --op keeps to what was asked" {
    railgauge plan topology.json --exact --op pair_latency
    [ "$(awk -F'\t' '$2 == "tournament"' plan.tsv | wc -l)" -ge 143 ]
    [ "$(awk -F'\t' 'NR > 2 { print $3 }' plan.tsv | sort -u)" = pair_latency ]
}

@test "--quick plays every pair in one epoch, without ladders; other words count" {
    stages() { awk -F'\t' 'NR > 2 { print $2 }' plan.tsv | sort -u | xargs; }
    railgauge plan topology.json --quick
    [ "$(stages)" = "shift tournament" ]
    [ "$(awk -F'\t' '$2 == "tournament"' plan.tsv | wc -l)" -eq $((3 * 143)) ]
    [ "$(awk -F'\t' 'NR > 2 { print $7 }' plan.tsv | sort -u)" = 0 ]
    railgauge plan topology.json --quick --op pair_latency --epochs 2
    [ "$(awk -F'\t' 'NR > 2 { print $3 }' plan.tsv | sort -u)" = pair_latency ]
    railgauge plan topology.json --op pair_latency,all_reduce --quick
    [ "$(stages)" = "collective tournament" ]
}

@test "the matrix of pairs alone has no ladder, unless a size is asked for" {
    ladders() { awk -F'\t' '$2 == "ladder"' plan.tsv | wc -l; }
    railgauge plan topology.json --op pair_latency,pair_bw
    [ "$(ladders)" -eq 0 ]
    railgauge plan topology.json --op pair_latency,pair_bw -e 64M
    [ "$(ladders)" -gt 0 ]
    railgauge plan topology.json --op pairs
    [ "$(ladders)" -gt 0 ]
}

@test "wrong words exit with 64 and say why" {
    run railgauge plan
    [ "$status" -eq 64 ]
    [ "${lines[0]}" = "railgauge plan: which topology.json?" ]
    run railgauge plan a b
    [ "$status" -eq 64 ]
    [ "${lines[0]}" = 'railgauge plan: one topology at a time: "b" after "a"' ]
    run railgauge plan topology.json --op gather
    [ "$status" -eq 64 ]
    [ "${lines[0]}" = 'railgauge plan: --op: no operation "gather"' ]
    run railgauge plan topology.json --pairs all
    [ "$status" -eq 64 ]
    [[ ${lines[0]} == *'pair schedule "all" is none of class, tournament, shift, isolated' ]]
}

@test "files that are not there or not topologies" {
    rejects plan 66 "railgauge plan: nothere.json: No such file or directory" nothere.json
    echo '{"format": "railgauge-matrix"}' >m.json
    rejects plan 65 "railgauge plan: m.json: " m.json
}

@test "every pair of too many is refused with its cost, in little memory; quick and the default are not" {
    railgauge discover --fabric gb200-nvl72 --racks 128 -q -o large.json
    for words in --exact "--quick --exact" "--pairs isolated" "--pairs shift"; do
        # shellcheck disable=SC2086 # words
        (ulimit -v 300000 && run ! railgauge plan large.json --dry-run $words &&
            [[ $output == *"every pair of 9216 endpoints"*"42,500,000 pairs"*" of measuring; more than "*"--cables TIME"* ]])
    done
    (ulimit -v 300000 && railgauge plan large.json --dry-run --quick >cost)
    grep -q '9216 endpoints, [0-9]\{2,3\} rounds' cost
}

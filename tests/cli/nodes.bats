#!/usr/bin/env bats
# nodes.bats - railgauge nodes: what a job costs on nodes, the best of the free ones, segments.

bats_require_minimum_version 1.5.0
load rejects
matrix=tests/golden/matrix.json
gb200=(--fabric gb200-nvl72 --racks 4)

@test "a list of nodes costs what railgauge predict says of it" {
    job='model=llama3.1-70b layout=tp=4,dp=auto batch=288'
    run railgauge nodes "${gb200[@]}" --job "$job" --nodes 'r02n[00-09],r00n[00-07]'
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = $'seconds\tnodes' ]
    [ "${lines[1]#*$'\t'}" = 'r02n[00-09],r00n[00-07]' ]
    sec=${lines[1]%%$'\t'*}
    predicted=$(railgauge predict "${gb200[@]}" --model llama3.1-70b --layout tp=4,dp=auto --batch 288 \
        --nodes 'r02n[00-09],r00n[00-07]' --json | jq .step_s)
    awk -v a="$sec" -v b="$predicted" 'BEGIN { d = a / b - 1; exit !(a > 0 && d < 1e-6 && d > -1e-6) }' || {
        echo "$sec where predict says $predicted"
        false
    }
}

@test "a collective costs what railgauge cost says" {
    run railgauge nodes $matrix --job 'all_gather 64M x 2' --nodes 'n[00-03]'
    [ "$status" -eq 0 ]
    one=$(railgauge cost $matrix all_gather 0-7 64M --json | jq .seconds)
    awk -v a="${lines[1]%%$'\t'*}" -v b="$one" 'BEGIN { d = a / (2 * b) - 1; exit !(d < 1e-6 && d > -1e-6) }'
}

@test "the best of the free ones avoid the slow host, and come as a table or JSON" {
    run railgauge nodes $matrix --job 'all_reduce 64M' --need 3 --best 4
    [ "$status" -eq 0 ]
    [ "${#lines[@]}" -eq 5 ]
    [[ $output != *n05* ]] # 0.3 of its rack: cost.bats
    awk -F'\t' 'NR > 2 && $1 < last { exit 1 } { last = $1 }' <<<"$output"
    table=$(sed 1d <<<"$output")
    run railgauge nodes $matrix --job 'all_reduce 64M' --need 3 --best 4 --json
    [ "$status" -eq 0 ]
    [ "$(jq -r '.sets[] | .nodes' <<<"$output")" = "$(cut -f2 <<<"$table")" ]
    [ "$(jq '.exact' <<<"$output")" = true ]
    run railgauge nodes $matrix --job 'all_reduce 64M' --free 'n[04-06]' --need 3
    [ "$(cut -f2 <<<"${lines[1]}")" = 'n[04-06]' ]
}

@test "segments: as wide as Slurm may lie them, and no narrower than needed" {
    run railgauge nodes "${gb200[@]}" --job 'all_to_all 64M groups of 32' --need 16 --segments
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = $'seconds\tsegment\tnodes' ]
    [ "$(cut -f2 <<<"$output" | tail -n +2 | tr '\n' ' ')" = '1 2 4 8 16 ' ]
    [ "$(cut -f3 <<<"${lines[4]}")" = 'r00n[00-07],r01n[00-07]' ]
    # Groups of 8 nodes are inside a rack from segments of 8 on.
    [ "$(cut -f1 <<<"${lines[4]}")" = "$(cut -f1 <<<"${lines[5]}")" ]
    awk -F'\t' 'NR == 4 { four = $1 } NR == 5 { exit !(four > 2 * $1) }' <<<"$output"
    # 24 nodes: no rack has more than 18
    run railgauge nodes "${gb200[@]}" --job 'all_gather 64M' --need 24 --segments
    [ "$(cut -f2 <<<"$output" | tail -n +2 | tr '\n' ' ')" = '1 2 3 4 6 8 12 ' ]
}

refused() { rejects nodes "$@"; }

@test "what is missing or wrong is said" {
    refused 64 'give a matrix file or --fabric' --job 'all_gather 1M' --need 1
    refused 64 '--job is missing' $matrix --need 1
    refused 64 'give --nodes LIST for a cost, or --need N' $matrix --job 'all_gather 1M'
    refused 64 'give --nodes LIST for a cost, or --need N' $matrix --job 'all_gather 1M' --nodes n00 --need 1
    refused 64 '--free, --best and --segments choose some' $matrix --job 'all_gather 1M' --nodes n00 --best 2
    refused 64 '--best ranks sets of nodes' $matrix --job 'all_gather 1M' --need 2 --best 2 --segments
    refused 64 '--need: ' $matrix --job 'all_gather 1M' --need 0
    refused 64 'one matrix at a time' $matrix $matrix --job 'all_gather 1M' --need 1
    refused 64 '--nodes: node "n08" is not among the 8' $matrix --job 'all_gather 1M' --nodes 'n[07-08]'
    refused 64 '--free: ' $matrix --job 'all_gather 1M' --free 'n[0' --need 1
    refused 64 'host n01 is listed twice' $matrix --job 'all_gather 1M' --nodes n01,n01
    refused 64 '9 hosts of the 8 free ones' $matrix --job 'all_gather 1M' --need 9
    refused 64 '--job: "all_gossip" is neither KEY=VALUE nor a collective' $matrix --job 'all_gossip 1M' --need 1
    refused 64 '--job: model=/etc/passwd: a job names what is installed, and no files' $matrix --job 'model=/etc/passwd' --need 1
    refused 64 'no model "llama9"' $matrix --job 'model=llama9' --need 1
    refused 64 'the job has 8 ranks, and the 2 hosts take 4' $matrix --job 'model=llama3.1-8b flops=1e14 layout=tp=8' --nodes 'n[00-01]'
    refused 66 'No such file' /nowhere/m.json --job 'all_gather 1M' --need 1
}

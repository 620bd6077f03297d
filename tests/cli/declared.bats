#!/usr/bin/env bats
# declared.bats - the groups of hosts that measuring finds, and what sources declare beside them.

bats_require_minimum_version 1.5.0

PODS=$BATS_TEST_DIRNAME/../golden/fabric-pods.json

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    railgauge run --transport sim --no-plots --fabric "$PODS" --noise 2% --op pairs --blind -o blind
    railgauge run --transport sim --no-plots --fabric "$PODS" --noise 2% --op pairs -o seen
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
}

@test "blind: domains, leaves and spines are found by measuring" {
    run -0 jq -r '.findings[] | select(.kind | IN("racks", "leaves", "spines")).text' blind/matrix.json
    [[ ${lines[0]} == "8 racks found by bandwidth, each an NVLink domain: r00n[00-03]; r01n[00-03];"* ]]
    [[ ${lines[1]} == "4 leaves found by bandwidth: r00n[00-03],r01n[00-03];"* ]]
    [[ ${lines[2]} == "2 spines found by bandwidth: r00n[00-03],r01n[00-03],r02n[00-03],r03n[00-03]; r04n[00-03],"* ]]
    [ "$(jq -c '[.tiers[].name]' blind/matrix.json)" = '["host","mnnvl","leaf","spine","fabric"]' ]
    # The truth comes back: seconds a byte within 2 %.
    run -0 railgauge show blind/matrix.json tiers --json
    [ "$(jq '[.tiers[] | select(.name == "spine").Bps / 36e9, select(.name == "fabric").Bps / 18e9 | . > 0.98 and . < 1.02] | all' <<< "$output")" = true ]
}

# bats test_tags=nightly
@test "blind, 1,024 hosts: the same in the rounds that 512 take" {
    railgauge run --transport sim --no-plots --fabric "$PODS" --racks 256 --noise 2% --op pairs --blind -o many
    # Both ways of each; one more round of latency tells whether endpoints of equal numbers share a leaf.
    [ "$(awk -F'\t' '$2 == "tournament" && $3 == "pair_bw"' many/plan.tsv | wc -l)" -eq $((2 * 511)) ]
    [ "$(awk -F'\t' '$2 == "tournament" && $3 == "pair_latency"' many/plan.tsv | wc -l)" -eq $((511 + 1)) ]
    run -0 jq -r '.findings[] | select(.kind | IN("racks", "leaves", "spines")).text' many/matrix.json
    rm -r many
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == "256 racks found by bandwidth, each an NVLink domain: r00n[00-03]; r01n[00-03];"* ]]
    [[ ${lines[1]} == "128 leaves found by bandwidth: r00n[00-03],r01n[00-03]; r02n[00-03],r03n[00-03];"* ]]
    [[ ${lines[2]} == "64 spines found by bandwidth: r00n[00-03],r01n[00-03],r02n[00-03],r03n[00-03]; r04n[00-03],"* ]]
}

@test "where racks are declared and spines are not, the last tier is split by measuring" {
    mkdir -p split
    cp seen/plan.tsv seen/points.tsv split/
    jq 'del(.spines) | .tiers |= map(select(.same != ["spine"]))' seen/topology.json > split/topology.json
    railgauge seal split/topology.json
    run -0 railgauge fit split
    run -0 jq -r '.findings[] | select(.kind == "spines").text' split/matrix.json
    [[ $output == "2 spines found by bandwidth: r00n[00-03],r01n[00-03],r02n[00-03],r03n[00-03]; r04"* ]]
    [ "$(jq -c '[.tiers[].name]' split/matrix.json)" = '["mnnvl","leaf","spine","fabric"]' ]
    run -0 jq -r '.findings[] | select(.kind == "spines").text' seen/matrix.json
    [ "$output" = "2 spines: the measured groups of hosts are the declared ones" ]
}

# conf EDIT: a topology.conf of eight blocks of four, changed by a sed program.
conf() {
    for r in 0 1 2 3 4 5 6 7; do echo "BlockName=b$r Nodes=r0${r}n[00-03]"; done | sed -E "$1" > topology.conf
    echo BlockSizes=4 >> topology.conf
}

@test "declared: the same groups agree, a swap is named with its evidence" {
    conf ''
    run -0 railgauge declared blind --slurm topology.conf
    [[ $output == *"agree   slurm topology.conf, domain against measured racks (by bandwidth): equal: the same 8 groups of 32 hosts"* ]]
    conf 's/r01n.00-03./r01n[00-02],r03n03/; s/^(.*b3.*)r03n.00-03./\1r03n[00-02],r01n03/'
    run -1 railgauge declared blind --slurm topology.conf
    [[ $output == *"2 of 32 hosts are elsewhere: b3 holds r01n03, measured with b1 (3 of 3 pairs at 36"*" GB/s); swap suspected with r03n03"* ]] ||
        [[ $output == *"b3 holds r01n03, measured with b1 (3 of 3 pairs at 35"* ]]
    [[ $output == *"@@ b3 @@"$'\n'" r03n[00-02]"$'\n'"-r01n03   measured with b1"*"+r03n03   declared in b1"* ]]
    run -1 railgauge declared blind --slurm topology.conf --json
    [ "$(jq -r '.comparisons[0].misfits[] | "\(.host) \(.belongs_to) \(.swap)"' <<< "$output" | xargs)" = "r01n03 b1 r03n03 r03n03 b3 r01n03" ]
    run -1 railgauge declared blind --slurm topology.conf -q
    [ -z "$output" ]
}

@test "declared: what the campaign was told does not count as measured" {
    run -2 railgauge declared seen/matrix.json
    [[ $output == *"seen/matrix.json has no coordinate that was measured: give the campaign's directory"* ]]
    run -0 railgauge declared seen
    [[ $output == *"preset pods, leaf against measured leaves (by bandwidth): equal: the same 4 groups of 32 hosts"* ]]
    [[ $output == *"preset pods, spine against measured spines (by bandwidth): equal"* ]]
    run -0 railgauge declared blind/matrix.json --topology seen/topology.json
    [[ $output == *"preset pods, rack against measured racks (by the fit): equal"* ]]
}

@test "declared: two sources without any measurement, and two blocks in one" {
    conf 's/^.*b7.*$//; s/(b6.*)/\1,r07n[00-03]/'
    run -1 railgauge declared blind --slurm topology.conf
    [[ $output == *"coarser: 7 groups that hold 8 whole ones; 6 of them are the same, so the others are mistakes"* ]]
    [[ $output == *"@@ 2 in one @@"$'\n'"+r06n[00-03]"$'\n'"+r07n[00-03]"$'\n'"-b6"* ]]
    run -1 railgauge declared --slurm topology.conf --topology seen/topology.json
    [[ $output == *"DIFFER  slurm topology.conf, domain against preset pods, "* ]]
    run -2 railgauge declared blind
    [[ $output == *"nothing to compare: no two groupings of these hosts"* ]]
    run -64 railgauge declared
    run -66 railgauge declared nowhere
}

@test "JSON keeps to its schema" {
    python3 -c 'import jsonschema' || skip "no python3 jsonschema"
    conf 's/r01n.00-03./r01n[00-02],r03n03,x1/; s/^(.*b3.*)r03n.00-03./\1r03n[00-02],r01n03/'
    railgauge declared blind --slurm topology.conf --json > differ.json || true
    railgauge declared seen --json > agree.json
    railgauge declared seen/matrix.json --json > unjudged.json || true
    [ "$(jq -c .agree differ.json agree.json unjudged.json | xargs)" = "false true null" ]
    for f in differ agree unjudged; do
        python3 -c 'import json, jsonschema, sys
jsonschema.validate(json.load(open(sys.argv[2])), json.load(open(sys.argv[1])))' \
            "$BATS_TEST_DIRNAME/../../src/schema/declared.schema.json" $f.json
    done
}

#!/usr/bin/env bats
# worlds.bats - noise of real fabrics as files, and faults with states, from the command line.

bats_require_minimum_version 1.5.0

setup() {
    top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
}

# The rows of points.tsv, without what tells when and how they were made.
rows() {
    grep -v '^#' "$1"
}

probe() {
    railgauge probe --quiet --fabric hgx-h100 --racks 2 "$@"
}

@test "a world of nothing but noise of samples is --noise" {
    probe --noise 2% -o noise.tsv
    probe --world clean -o clean.tsv
    probe --world clean --noise 3% -o more.tsv
    diff <(rows noise.tsv) <(rows clean.tsv)
    run ! cmp <(rows clean.tsv) <(rows more.tsv)
}

@test "equal seeds give equal points, and a machine keeps its parts" {
    probe --world mix --sim-seed 4 -o a.tsv
    probe --world mix --sim-seed 4 -o b.tsv
    probe --world mix --sim-seed 4 --machine 1 -o c.tsv
    diff <(rows a.tsv) <(rows b.tsv)
    run ! cmp <(rows a.tsv) <(rows c.tsv)
    # Latency of hosts is all that is left of this world: it is the same in both campaigns.
    jq '.noise |= map(select(.kind == "host-latency"))' "$top/topo/worlds/mix.json" >kept.json
    probe --world kept.json --op pair_latency --sim-seed 1 -o d.tsv
    probe --world kept.json --op pair_latency --sim-seed 2 -o e.tsv
    probe --world kept.json --op pair_latency --sim-seed 1 --machine 5 -o f.tsv
    diff <(rows d.tsv) <(rows e.tsv)
    run ! cmp <(rows d.tsv) <(rows f.tsv)
}

@test "a campaign in a world that was cut is resumed as if it had not been" {
    railgauge run -q --fabric hgx-h100 --racks 2 --world mix --fault slow-nic=3:0.6@time=0.4 -o whole --no-verdict
    cp -r whole cut
    head -c 150000 whole/points.tsv >cut/points.tsv
    run -1 railgauge run -q --resume -o cut # a part is named
    diff <(rows whole/points.tsv) <(rows cut/points.tsv)
    [ "$(jq -c .options.world cut/campaign.json)" = '["mix"]' ]
}

@test "what is fitted knows the world by its command line alone" {
    railgauge run -q --fabric hgx-h100 --racks 2 --world stray5 -o c --no-verdict
    for f in c/topology.json c/matrix.json; do
        jq -e 'del(.provenance, .probe_provenance)' "$f" >f.json
        run ! grep stray f.json
    done
}

@test "spread within points follows the world" {
    probe --op pair_bw -b 64M -e 64M --world tail25 -o tail.tsv
    probe --op pair_bw -b 64M -e 64M --world clean -o clean.tsv
    for w in tail clean; do
        rows $w.tsv | awk -F'\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
            { spread = $at["sec_p95"] / $at["sec"]; sum += spread; n++ } END { printf "%.3f\n", sum / n }' >$w.spread
    done
    awk '{ exit !($1 < 1.06) }' clean.spread
    awk '{ exit !($1 > 1.3) }' tail.spread
}

@test "an oversubscribed level that the fabric does not have is refused" {
    jq '.noise[1].level = "spine"' "$top/topo/worlds/pods2.json" >spine.json
    run -64 --separate-stderr railgauge probe --fabric hgx-h100 --world spine.json -o p.tsv
    [[ $stderr == "railgauge probe: --world spine.json: hgx-h100 has no spines to share uplinks"* ]]
    run -64 --separate-stderr railgauge probe --fabric hgx-h100 --fault 'slow-nic=1:0.5@tim=0.4' -o p.tsv
    [[ $stderr == *'--fault slow-nic=1:0.5@tim=0.4: unknown state "tim" of slow-nic (did you mean "time"?)'* ]]
}

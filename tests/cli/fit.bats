#!/usr/bin/env bats
# fit.bats - railgauge fit on simulated campaigns whose truth is known.

bats_require_minimum_version 1.5.0

load cpu

campaign() { # ARG...: exits with 1 where a fault is put in
    local want=0 code=0
    [[ $* != *--fault* ]] || want=1
    railgauge run --transport sim --no-plots -o "$BATS_TEST_TMPDIR/c" "$@" >"$BATS_TEST_TMPDIR/log" 2>&1 || code=$?
    [ "$code" -eq "$want" ] || {
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
    [ "$(jq -S 'del(.provenance, .checksum)' "$m")" = "$(jq -S 'del(.provenance, .checksum)' "$BATS_TEST_TMPDIR/again.json")" ]
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

# compute_table SLOW SHARE - 72 GPUs of 1500 TFLOP/s and 7 TB/s; GPU SLOW has SHARE of the first.
compute_table() {
    echo '# railgauge-compute 1'
    printf '%s\t' endpoint host gpu busid kind dtype m n k unit value lo hi samples limit
    echo note
    for e in {0..71}; do
        for n in 4096 6144 28672; do
            awk -v e="$e" -v n="$n" -v of="$([ "$e" = "$1" ] && echo "$2" || echo 1)" 'BEGIN {
                v = 1500e12 * of * (1 + 0.002 * sin(7 * e + n)); OFS = "\t"
                print e, "h", "NVIDIA GB200", "-", "gemm", "bf16", 8192, n, 4096, "FLOP/s", v, v, v, 30, 0, "-" }'
        done
        printf '%d\th\tNVIDIA GB200\t-\thbm_copy\t-\t0\t0\t0\tB/s\t7e12\t7e12\t7e12\t30\t8e12\t-\n' "$e"
    done
}

@test "96 racks: uplinks of two that are slow are told in hardly more time than that all is well" {
    local healthy
    campaign --fabric gb200-nvl72 --racks 96 --op pairs
    cpu_seconds railgauge fit -q "$BATS_TEST_TMPDIR/c"
    healthy=$cpu
    rm -r "$BATS_TEST_TMPDIR/c"
    campaign --fabric gb200-nvl72 --racks 96 --op pairs --fault slow-rack-uplinks=41:0.33:tx --fault slow-rack-uplinks=30:0.5
    cpu_seconds railgauge fit -q "$BATS_TEST_TMPDIR/c" --no-verdict
    [ "$(jq -c '[.exceptions[] | [.part, .a]]' "$m")" = '[["rack_uplinks",30],["rack_uplinks",41]]' ]
    echo "$cpu s, healthy $healthy s"
    awk -v x="$cpu" -v y="$healthy" 'BEGIN { exit !(x < 2.5 * y) }'
}

@test "what GPUs compute alone: a slow one is named, predictions take the medians of the others" {
    campaign --fabric gb200-nvl72 --racks 1 --epochs 1 --op pairs
    compute_table 17 0.8 >"$BATS_TEST_TMPDIR/c/compute.tsv"
    railgauge fit -q "$BATS_TEST_TMPDIR/c"
    [ "$(jq -r '[.findings[] | select(.kind == "slow_gpu").text] | length' "$m")" -eq 1 ]
    jq -r '.findings[].text' "$m" | grep -q 'endpoint 17 (r00n04:1 .*matrix products at 0.80 of the median of 72 GPUs'
    jq -e '.compute | .devices == 72 and (.gemm | length) == 3 and (.gemm | all(.devices == 71)) and
        (.gemm[0].flops / 1500e12 - 1 | fabs) < 0.005 and .gemm[0].share > 0.5 and .share.hbm_Bps == 0.875' "$m"
    if python3 -c 'import jsonschema' 2>/dev/null; then
        python3 -c 'import json, sys, jsonschema; jsonschema.validate(*(json.load(open(f)) for f in sys.argv[1:]))' \
            "$m" "$BATS_TEST_DIRNAME/../../src/schema/matrix.schema.json"
    fi
    run -0 railgauge predict "$m" --model llama3.1-8b --layout dp_shard=72
    [[ $output == *'measured GEMM: bf16 products of these shapes at 1500 TFLOP/s'* ]]
    run -65 --separate-stderr railgauge fit -q "$BATS_TEST_TMPDIR/c" --compute "$m"
    [[ $stderr == *'matrix.json:1: the first line is not "# railgauge-compute 1"'* ]]
    run -66 --separate-stderr railgauge fit -q "$BATS_TEST_TMPDIR/c" --compute none.tsv
}

#!/usr/bin/env bats
# curves.bats - railgauge-calibrate curves: points left out and predicted, against curves of known truth.

bats_require_minimum_version 1.5.0

# curve OP AWK: 10 sizes of 1 KiB x4 with the time that AWK makes of s, in us.
curve() {
    awk -v op="$1" 'BEGIN {OFS = "\t"; for (i = 0; i < 10; i++) {s = 1024 * 4 ^ i
        printf "hgx\t2.29.2\t%s\t8\t%d\t%.9g\t0\n", op, s, '"$2"'}}'
}
table() {
    printf 'system\tnccl_version\top\tranks\tbytes\tlatency_us\tbusbw_GBps\n'
    curve all_gather '10 + s / 3e5'
    curve alltoall '10 + s / 3e5 + (s > 1e6 ? 40 : 0)'
}

setup() {
    table >"$BATS_TEST_TMPDIR/t.tsv"
    cd "$BATS_TEST_TMPDIR" || exit 1
}

@test "a straight line is met exactly, a step misses in its gap only" {
    run --separate-stderr railgauge-calibrate curves t.tsv --json
    [ "$status" -eq 0 ]
    [ "$(jq '.curves' <<<"$output")" -eq 2 ]
    [ "$(jq -r '[.rows[] | "\(.system) \(.op) \(.n)"] | join(", ")' <<<"$output")" = \
        "hgx all_gather 8, hgx alltoall 8" ]
    [ "$(jq '.rows[0].max_pct < 1e-4' <<<"$output")" = true ]
    [ "$(jq '.rows[1].median_pct < 1e-4 and .rows[1].max_pct > 10' <<<"$output")" = true ]
    [ "$(jq '.total.n' <<<"$output")" -eq 16 ]
}

@test "the points missed most are those beside the step" {
    run railgauge-calibrate curves t.tsv --worst 2
    [ "$status" -eq 0 ]
    grep -qE '^total +- +16 ' <<<"$output"
    grep -qE '^hgx +2.29.2 +alltoall +8 +256 KiB +\+' <<<"$output"
    grep -qE '^hgx +2.29.2 +alltoall +8 +1 MiB +-' <<<"$output"
}

@test "a thinned ladder predicts what lies between, from every start" {
    run --separate-stderr railgauge-calibrate curves t.tsv --every 16 --json
    [ "$status" -eq 0 ]
    [ "$(jq '.rows[0].n' <<<"$output")" -eq 8 ]
    [ "$(jq '.rows[0].max_pct < 1e-4' <<<"$output")" = true ]
    run --separate-stderr railgauge-calibrate curves t.tsv --every 64 --json
    [ "$(jq '.rows[0].n' <<<"$output")" -eq 14 ]
}

@test "published curves: median within 2 %" {
    curves=${RAILGAUGE_CURVES:-$BATS_TEST_DIRNAME/../../../shared/datasets/nccl_curves.tsv}
    [ -r "$curves" ] || skip "no table of published curves (RAILGAUGE_CURVES)"
    run --separate-stderr railgauge-calibrate curves "$curves" --json
    [ "$status" -eq 0 ]
    echo "$output" | jq .total
    [ "$(jq '.total.n > 1000 and .total.median_pct <= 2 and .total.p90_pct <= 12.5' <<<"$output")" = true ]
}
